//! Behaviour of the whole engine on a simulated disk.

mod backup;
mod bucket;
mod changing;
mod damage;
mod faults;
mod fsyncs;
mod full_disk;
mod growth;
mod limits;
mod model;
mod older_shard;
mod open_files;
mod owners;
mod reference_file;
mod replaced;
mod retype;
mod rollups;
mod settings;
mod support;
mod threads;
mod unproved;
