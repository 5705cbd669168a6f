# The one entry point for people: `just` lists what there is.

default:
    @just --list

# Build the binary.
build:
    cargo build --release --bin marigram

# All tests.
test:
    cargo test --release

# The main job: real sensor data in, questions answered.
demo:
    cargo run --release --bin marigram -- demo

# Formatting, lints and documentation, as strict as CI.
check:
    cargo fmt --all --check
    cargo clippy --release --workspace --all-targets -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --release --workspace --no-deps

# How large files and functions are: median, largest, and functions over 70 lines.
shape:
    cargo test --release -p marigram-testing --test architecture files_and_functions -- --nocapture

# Crash simulation for longer: `just crash 100000`.
crash seeds="20000":
    MARIGRAM_CRASH_SEEDS={{seeds}} cargo test --release -p marigram-testing --test crash -- --nocapture

# The same with the assertions of the storage crates, which cost speed: `just crash-asserting 20000`.
crash-asserting seeds="5000":
    MARIGRAM_CRASH_SEEDS={{seeds}} cargo --config testing/debug-assertions.toml test --release -p marigram-testing --test crash -- --nocapture

# Rounds of `kill -9` for longer: `just kill-rounds 500`.
kill-rounds rounds="500":
    MARIGRAM_KILL_ROUNDS={{rounds}} cargo test --release -p marigram-cli --test end_to_end kill_rounds -- --nocapture

# Random questions beside DuckDB for longer: `just differential 200000`.
differential queries="20000" seed="1":
    cargo build --release --bin marigram
    MARIGRAM_DIFFERENTIAL_QUERIES={{queries}} MARIGRAM_DIFFERENTIAL_SEED={{seed}} testing/differential/run

# Random statements about reference tables beside PostgreSQL for longer: `just postgres 200000`.
postgres statements="20000" seed="1":
    cargo build --release --bin marigram
    MARIGRAM_POSTGRES_STATEMENTS={{statements}} MARIGRAM_POSTGRES_SEED={{seed}} testing/postgres/run

# Everything that attacks the server, for long: `just torture`, or `just torture 600` for ten minutes
# of each load. The counts are those of docs/benchmarks/0.4-torture.
torture seconds="3600":
    just crash 1000000
    just crash-asserting 100000
    just kill-rounds 500
    just damaged-directories 10000
    just deep-statements
    just differential 200000
    testing/browser/run
    just soak {{seconds}} 128
    just soak {{seconds}} 256
    just soak {{seconds}} 1024

# Data directories with files removed, cut, swapped and aged: `just damaged-directories 10000`.
damaged-directories count="10000":
    MARIGRAM_DAMAGED_DIRECTORIES={{count}} cargo test --release -p marigram-testing --test damaged_directory -- --nocapture

# Statements nested at every depth, with lists of every length.
deep-statements:
    MARIGRAM_DEEP_ALL=1 cargo test --release -p marigram-sql --test hostile -- --nocapture

# A mixed load in a control group of 1.1 × the memory limit (MiB): `just soak 600 256`.
soak seconds="600" limit="256":
    cargo build --release --bin marigram
    cargo run --release -p marigram-soak -- --seconds {{seconds}} --limit-mib {{limit}} \
        --data "$(mktemp -d)" --out target/soak/{{limit}}

# Studies of the laboratory: `just lab set-s --scale medium`.
lab +arguments="all":
    cargo run --release --bin marigram -- lab run {{arguments}}

# Licences and advisories (needs cargo-deny).
deny:
    cargo deny check

# What CI runs.
ci:
    .ci/run
