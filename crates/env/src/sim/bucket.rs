//! A bucket in memory: whole blobs, and nothing of a blob in the making.

use crate::blob::{BlobMeta, BlobStore, BlobStores, BlobUpload, PutMode};
use crate::traits::{LogStore, ReadAt};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// By whole name.
type Blobs = Arc<Mutex<BTreeMap<String, Arc<[u8]>>>>;

/// A blob store that is no file system: what an upload has written is nowhere before it is finished.
/// Nothing in it is lost. The blobs of a directory are below a prefix, its name. Clones are handles
/// on the same bucket.
#[derive(Clone, Debug, Default)]
pub struct SimBucket {
    blobs: Blobs,
    /// Begins the names of all blobs that this handle reaches.
    prefix: String,
}

impl SimBucket {
    fn whole(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn get(&self, name: &str) -> io::Result<Arc<[u8]>> {
        let blob = self.blobs.lock().get(&self.whole(name)).cloned();
        blob.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl BlobStores for SimBucket {
    fn blobs_in(&self, _: &Arc<dyn LogStore>, dir: &Path) -> Arc<dyn BlobStore> {
        Arc::new(Self {
            blobs: Arc::clone(&self.blobs),
            prefix: format!("{}{}/", self.prefix, dir.display()),
        })
    }
}

impl BlobStore for SimBucket {
    fn put(&self, name: &str, bytes: &[u8], mode: PutMode) -> io::Result<()> {
        let mut blobs = self.blobs.lock();
        if mode == PutMode::Create && blobs.contains_key(&self.whole(name)) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        blobs.insert(self.whole(name), bytes.into());
        Ok(())
    }

    fn upload(&self, name: &str) -> io::Result<Box<dyn BlobUpload>> {
        Ok(Box::new(SimUpload {
            bucket: self.clone(),
            name: name.to_owned(),
            bytes: Vec::new(),
        }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn ReadAt>> {
        Ok(Arc::new(SimBlob(self.get(name)?)))
    }

    fn head(&self, name: &str) -> io::Result<Option<u64>> {
        let blobs = self.blobs.lock();
        Ok(blobs.get(&self.whole(name)).map(|blob| blob.len() as u64))
    }

    fn list(&self, prefix: &str) -> io::Result<Vec<BlobMeta>> {
        let blobs = self.blobs.lock();
        let own = blobs.iter().filter_map(|(name, blob)| {
            let name = name.strip_prefix(&self.prefix)?;
            let (parent, _) = name.rsplit_once('/').unwrap_or(("", name));
            (parent == prefix).then(|| BlobMeta {
                name: name.to_owned(),
                bytes: blob.len() as u64,
            })
        });
        Ok(own.collect())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut blobs = self.blobs.lock();
        let blob = blobs
            .remove(&self.whole(from))
            .ok_or(io::ErrorKind::NotFound)?;
        blobs.insert(self.whole(to), blob);
        Ok(())
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.blobs.lock().remove(&self.whole(name));
        Ok(())
    }

    fn sync_names(&self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn location(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("bucket:/{}", self.whole(name)))
    }
}

#[derive(Debug)]
struct SimBlob(Arc<[u8]>);

impl ReadAt for SimBlob {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.0.get(offset..).unwrap_or_default();
        let bytes = rest.get(..buf.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        buf.copy_from_slice(bytes);
        Ok(())
    }
}

#[derive(Debug)]
struct SimUpload {
    bucket: SimBucket,
    name: String,
    bytes: Vec<u8>,
}

impl BlobUpload for SimUpload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.bucket.put(&self.name, &self.bytes, PutMode::Overwrite)
    }
}
