//! The functions of TimescaleDB that change something, with the names of their arguments.

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HypertableFunction {
    /// `create_hypertable`
    CreateHypertable,
    /// `add_dimension`
    AddDimension,
    /// `set_chunk_time_interval`
    SetChunkInterval,
    /// `add_retention_policy`
    AddRetention,
    /// `remove_retention_policy`
    RemoveRetention,
    /// `add_columnstore_policy`, `add_compression_policy`
    AddColumnstore,
    /// `remove_columnstore_policy`, `remove_compression_policy`
    RemoveColumnstore,
    /// `add_continuous_aggregate_policy`
    AddRefresh,
    /// `remove_continuous_aggregate_policy`
    RemoveRefresh,
    /// `refresh_continuous_aggregate`
    Refresh,
    /// `alter_job`
    AlterJob,
    /// `delete_job`
    DeleteJob,
    /// `run_job`
    RunJob,
    /// `drop_chunks`
    DropChunks,
    /// `compress_chunk`, `decompress_chunk` and the like: compaction does it.
    ChunkStorage,
    /// What concerns the storage of a table, and needs no statement here.
    TableStorage,
    /// `timescaledb_pre_restore`, `timescaledb_post_restore`
    Restore,
    /// What Marigram does not have.
    Refused(&'static str),
}

/// A function: its name, what it does, and the names of its arguments. The first argument of most is a
/// table or a view.
#[derive(Debug)]
pub(crate) struct FunctionDescription {
    /// Its name.
    pub name: &'static str,
    /// What a call does.
    pub function: HypertableFunction,
    /// The names of its arguments, in order.
    pub arguments: &'static [&'static str],
}

impl FunctionDescription {
    /// Whether the first argument names a table or a view.
    pub(crate) fn names_table(&self) -> bool {
        use HypertableFunction::{AlterJob, ChunkStorage, DeleteJob, Refused, Restore, RunJob};
        !matches!(
            self.function,
            AlterJob | DeleteJob | RunJob | ChunkStorage | Restore | Refused(_)
        )
    }

    /// Whether it returns any number of rows.
    pub(crate) fn returns_set(&self) -> bool {
        self.function == HypertableFunction::DropChunks
    }
}

const fn function(
    name: &'static str,
    function: HypertableFunction,
    arguments: &'static [&'static str],
) -> FunctionDescription {
    FunctionDescription {
        name,
        function,
        arguments,
    }
}

/// The arguments of `create_hypertable` and `add_dimension` whose second one is `by_range` or `by_hash`.
pub(crate) const CREATE_BY_DIMENSION: &[&str] = &[
    "relation",
    "dimension",
    "create_default_indexes",
    "if_not_exists",
    "migrate_data",
];
/// See [`CREATE_BY_DIMENSION`].
pub(crate) const ADD_BY_DIMENSION: &[&str] = &["hypertable", "dimension", "if_not_exists"];

/// The functions.
pub(crate) const FUNCTIONS: &[FunctionDescription] = {
    use HypertableFunction as F;
    const JOB_TIMES: &str =
        "no jobs run by a schedule; a program of your own may send the statements";
    &[
        function(
            "create_hypertable",
            F::CreateHypertable,
            &[
                "relation",
                "time_column_name",
                "partitioning_column",
                "number_partitions",
                "associated_schema_name",
                "associated_table_prefix",
                "chunk_time_interval",
                "create_default_indexes",
                "if_not_exists",
                "partitioning_func",
                "migrate_data",
                "chunk_target_size",
                "chunk_sizing_func",
                "time_partitioning_func",
            ],
        ),
        function(
            "add_dimension",
            F::AddDimension,
            &[
                "hypertable",
                "column_name",
                "number_partitions",
                "chunk_time_interval",
                "partitioning_func",
                "if_not_exists",
            ],
        ),
        function(
            "set_chunk_time_interval",
            F::SetChunkInterval,
            &["hypertable", "chunk_time_interval", "dimension_name"],
        ),
        function(
            "set_partitioning_interval",
            F::SetChunkInterval,
            &["hypertable", "partition_interval", "dimension_name"],
        ),
        function(
            "set_number_partitions",
            F::TableStorage,
            &["hypertable", "number_partitions", "dimension_name"],
        ),
        function(
            "add_retention_policy",
            F::AddRetention,
            &[
                "relation",
                "drop_after",
                "if_not_exists",
                "schedule_interval",
                "initial_start",
                "timezone",
                "drop_created_before",
            ],
        ),
        function(
            "remove_retention_policy",
            F::RemoveRetention,
            &["relation", "if_exists"],
        ),
        function(
            "add_compression_policy",
            F::AddColumnstore,
            &[
                "hypertable",
                "compress_after",
                "if_not_exists",
                "schedule_interval",
                "initial_start",
                "timezone",
                "compress_created_before",
                "hypercore_use_access_method",
            ],
        ),
        function(
            "add_columnstore_policy",
            F::AddColumnstore,
            &[
                "hypertable",
                "after",
                "if_not_exists",
                "schedule_interval",
                "initial_start",
                "timezone",
                "created_before",
                "hypercore_use_access_method",
            ],
        ),
        function(
            "remove_compression_policy",
            F::RemoveColumnstore,
            &["hypertable", "if_exists"],
        ),
        function(
            "remove_columnstore_policy",
            F::RemoveColumnstore,
            &["hypertable", "if_exists"],
        ),
        function(
            "add_reorder_policy",
            F::TableStorage,
            &[
                "hypertable",
                "index_name",
                "if_not_exists",
                "initial_start",
                "timezone",
            ],
        ),
        function(
            "remove_reorder_policy",
            F::TableStorage,
            &["hypertable", "if_exists"],
        ),
        function(
            "enable_chunk_skipping",
            F::TableStorage,
            &["hypertable", "column_name", "if_not_exists"],
        ),
        function(
            "disable_chunk_skipping",
            F::TableStorage,
            &["hypertable", "column_name", "if_not_exists"],
        ),
        function(
            "add_continuous_aggregate_policy",
            F::AddRefresh,
            &[
                "continuous_aggregate",
                "start_offset",
                "end_offset",
                "schedule_interval",
                "if_not_exists",
                "initial_start",
                "timezone",
                "include_tiered_data",
                "buckets_per_batch",
                "max_batches_per_execution",
                "refresh_newest_first",
            ],
        ),
        function(
            "remove_continuous_aggregate_policy",
            F::RemoveRefresh,
            &["continuous_aggregate", "if_not_exists", "if_exists"],
        ),
        function(
            "refresh_continuous_aggregate",
            F::Refresh,
            &[
                "continuous_aggregate",
                "window_start",
                "window_end",
                "force",
                "options",
            ],
        ),
        function(
            "alter_job",
            F::AlterJob,
            &[
                "job_id",
                "schedule_interval",
                "max_runtime",
                "max_retries",
                "retry_period",
                "scheduled",
                "config",
                "next_start",
                "if_exists",
                "check_config",
                "fixed_schedule",
                "initial_start",
                "timezone",
                "job_name",
            ],
        ),
        function("delete_job", F::DeleteJob, &["job_id"]),
        function("run_job", F::RunJob, &["job_id"]),
        function("add_job", F::Refused(JOB_TIMES), &[]),
        function(
            "drop_chunks",
            F::DropChunks,
            &[
                "relation",
                "older_than",
                "newer_than",
                "verbose",
                "created_before",
                "created_after",
            ],
        ),
        function(
            "compress_chunk",
            F::ChunkStorage,
            &["chunk", "if_not_compressed", "recompress"],
        ),
        function(
            "decompress_chunk",
            F::ChunkStorage,
            &["chunk", "if_compressed"],
        ),
        function(
            "recompress_chunk",
            F::ChunkStorage,
            &["chunk", "if_not_compressed"],
        ),
        function(
            "convert_to_columnstore",
            F::ChunkStorage,
            &["chunk", "if_not_columnstore", "recompress"],
        ),
        function(
            "convert_to_rowstore",
            F::ChunkStorage,
            &["chunk", "if_columnstore"],
        ),
        function(
            "reorder_chunk",
            F::ChunkStorage,
            &["chunk", "index", "verbose"],
        ),
        function("timescaledb_pre_restore", F::Restore, &[]),
        function("timescaledb_post_restore", F::Restore, &[]),
        function(
            "set_integer_now_func",
            F::Refused("times are TIMESTAMP or TIMESTAMPTZ; convert integers with to_timestamp"),
            &[],
        ),
        function(
            "create_distributed_hypertable",
            F::Refused("one server holds all rows; write create_hypertable"),
            &[],
        ),
        function(
            "attach_tablespace",
            F::Refused("`marigram serve --data` names the one place of all tables"),
            &[],
        ),
        function(
            "move_chunk",
            F::Refused("`marigram serve --data` names the one place of all tables"),
            &[],
        ),
    ]
};

/// The function of this name.
pub(crate) fn find(name: &str) -> Option<&'static FunctionDescription> {
    FUNCTIONS.iter().find(|known| known.name == name)
}
