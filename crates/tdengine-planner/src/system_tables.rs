//! Tables about the server itself: there is one node, and what a cluster has beside it is empty.

use crate::listing::TaosListing;
use crate::run::TaosRun;
use crate::taos_value::Val;
use marigram_sql::SqlResult;
use marigram_tdengine::TaosType;

const TEXT: TaosType = TaosType::VarChar(256);
const TIME: TaosType = TaosType::Timestamp;
const INT: TaosType = TaosType::Int;

/// Tables without rows, and their columns.
const EMPTY: [(&str, &[(&str, TaosType)]); 19] = [
    (
        "ins_qnodes",
        &[("id", INT), ("endpoint", TEXT), ("create_time", TIME)],
    ),
    (
        "ins_snodes",
        &[("id", INT), ("endpoint", TEXT), ("create_time", TIME)],
    ),
    (
        "ins_bnodes",
        &[("id", INT), ("endpoint", TEXT), ("create_time", TIME)],
    ),
    (
        "ins_anodes",
        &[("id", INT), ("url", TEXT), ("status", TEXT)],
    ),
    (
        "ins_functions",
        &[
            ("name", TEXT),
            ("comment", TEXT),
            ("aggregate", INT),
            ("create_time", TIME),
        ],
    ),
    (
        "ins_indexes",
        &[
            ("index_name", TEXT),
            ("db_name", TEXT),
            ("table_name", TEXT),
            ("column_name", TEXT),
        ],
    ),
    (
        "ins_vgroups",
        &[
            ("vgroup_id", INT),
            ("db_name", TEXT),
            ("tables", INT),
            ("status", TEXT),
        ],
    ),
    (
        "ins_vnodes",
        &[
            ("dnode_id", INT),
            ("vgroup_id", INT),
            ("db_name", TEXT),
            ("status", TEXT),
        ],
    ),
    (
        "ins_topics",
        &[
            ("topic_name", TEXT),
            ("db_name", TEXT),
            ("create_time", TIME),
            ("sql", TEXT),
        ],
    ),
    (
        "ins_streams",
        &[
            ("stream_name", TEXT),
            ("create_time", TIME),
            ("sql", TEXT),
            ("status", TEXT),
        ],
    ),
    (
        "ins_subscriptions",
        &[
            ("topic_name", TEXT),
            ("consumer_group", TEXT),
            ("vgroup_id", INT),
        ],
    ),
    (
        "ins_views",
        &[
            ("view_name", TEXT),
            ("db_name", TEXT),
            ("effective_user", TEXT),
            ("create_time", TIME),
        ],
    ),
    (
        "ins_compacts",
        &[("compact_id", INT), ("db_name", TEXT), ("start_time", TIME)],
    ),
    (
        "ins_tsmas",
        &[("tsma_name", TEXT), ("db_name", TEXT), ("table_name", TEXT)],
    ),
    (
        "perf_connections",
        &[
            ("conn_id", INT),
            ("user", TEXT),
            ("app", TEXT),
            ("login_time", TIME),
        ],
    ),
    (
        "perf_queries",
        &[
            ("kill_id", TEXT),
            ("query_id", TEXT),
            ("user", TEXT),
            ("sql", TEXT),
        ],
    ),
    (
        "perf_consumers",
        &[
            ("consumer_id", TEXT),
            ("consumer_group", TEXT),
            ("status", TEXT),
        ],
    ),
    (
        "perf_trans",
        &[("id", INT), ("create_time", TIME), ("stage", TEXT)],
    ),
    (
        "perf_apps",
        &[("app_id", TEXT), ("ip", TEXT), ("pid", INT), ("name", TEXT)],
    ),
];

/// Settings that clients ask for.
const VARIABLES: [(&str, &str); 5] = [
    ("timezone", "UTC (UTC, +0000)"),
    ("locale", "en_US.UTF-8"),
    ("charset", "UTF-8"),
    ("statusInterval", "1"),
    ("maxSQLLength", "1048576"),
];

/// A table about the server; `None` if there is no such one.
pub(crate) async fn system_table(run: &TaosRun<'_>, name: &str) -> SqlResult<Option<TaosListing>> {
    if let Some((_, columns)) = EMPTY.iter().find(|(empty, _)| *empty == name) {
        return Ok(Some(TaosListing::new(columns.to_vec())));
    }
    let Some((columns, rows)) = server_rows(run, name) else {
        return Ok(None);
    };
    let mut listing = TaosListing::new(columns);
    for row in rows {
        listing.push(run, row)?;
    }
    Ok(Some(listing))
}

/// Columns, and rows of them.
type ServerRows = (Vec<(&'static str, TaosType)>, Vec<Vec<Val>>);

/// The rows of a table about the server.
fn server_rows(run: &TaosRun<'_>, name: &str) -> Option<ServerRows> {
    Some(match name {
        "ins_cluster" => cluster(),
        "ins_grants" => grants(),
        "ins_dnodes" => (
            vec![
                ("id", TaosType::SmallInt),
                ("endpoint", TEXT),
                ("vnodes", TaosType::SmallInt),
                ("support_vnodes", TaosType::SmallInt),
                ("status", TaosType::VarChar(10)),
                ("create_time", TIME),
                ("reboot_time", TIME),
                ("note", TEXT),
            ],
            vec![vec![
                Val::Int(1),
                Val::of_text("localhost:6030"),
                Val::Int(2),
                Val::Int(8),
                Val::of_text("ready"),
                Val::Null,
                Val::Null,
                Val::of_text(""),
            ]],
        ),
        "ins_mnodes" => (
            vec![
                ("id", TaosType::SmallInt),
                ("endpoint", TEXT),
                ("role", TaosType::VarChar(12)),
                ("status", TaosType::VarChar(9)),
                ("create_time", TIME),
            ],
            vec![vec![
                Val::Int(1),
                Val::of_text("localhost:6030"),
                Val::of_text("leader"),
                Val::of_text("ready"),
                Val::Null,
            ]],
        ),
        "ins_configs" => (
            vec![
                ("name", TaosType::VarChar(32)),
                ("value", TaosType::VarChar(64)),
                ("scope", TaosType::VarChar(8)),
            ],
            VARIABLES
                .iter()
                .map(|(name, value)| {
                    vec![
                        Val::of_text(name),
                        Val::of_text(value),
                        Val::of_text("both"),
                    ]
                })
                .collect(),
        ),
        "ins_users" => (user_columns(), vec![own_user(run)]),
        _ => return None,
    })
}

fn cluster() -> ServerRows {
    (
        vec![
            ("id", TaosType::BigInt),
            ("name", TEXT),
            ("uptime", INT),
            ("create_time", TIME),
            ("version", TaosType::VarChar(10)),
            ("expire_time", TIME),
        ],
        vec![vec![
            Val::Int(1),
            Val::of_text("marigram"),
            Val::Int(0),
            Val::Null,
            Val::of_text("community"),
            Val::Null,
        ]],
    )
}

fn grants() -> ServerRows {
    (
        vec![
            ("version", TEXT),
            ("expire_time", TEXT),
            ("service_time", TEXT),
            ("expired", TaosType::VarChar(5)),
            ("state", TaosType::VarChar(9)),
        ],
        vec![vec![
            Val::of_text("community"),
            Val::of_text("unlimited"),
            Val::of_text("unlimited"),
            Val::of_text("false"),
            Val::of_text("granted"),
        ]],
    )
}

fn user_columns() -> Vec<(&'static str, TaosType)> {
    vec![
        ("name", TaosType::VarChar(24)),
        ("super", TaosType::TinyInt),
        ("enable", TaosType::TinyInt),
        ("sysinfo", TaosType::TinyInt),
        ("createdb", TaosType::TinyInt),
        ("create_time", TIME),
        ("allowed_host", TEXT),
    ]
}

/// The user of the request: others are listed with SQL.
fn own_user(run: &TaosRun<'_>) -> Vec<Val> {
    let session = run.context.session();
    let everything = marigram_access::DatabasePrivileges::ALL;
    let is_super = session.rights.allow("*", everything);
    vec![
        Val::of_text(&session.identity.user),
        Val::Int(i64::from(is_super)),
        Val::Int(1),
        Val::Int(1),
        Val::Int(i64::from(is_super)),
        Val::Null,
        Val::Null,
    ]
}
