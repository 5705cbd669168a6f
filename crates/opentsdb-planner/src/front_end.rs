//! OpenTSDB's requests as one of the service's query languages.

use crate::last_points::last_points;
use crate::names::{lookup, suggest};
use crate::series_rows::{QueryPart, series_rows};
use crate::statement::{OpenTsdbRun, invalid};
use async_trait::async_trait;
use marigram_access::DatabasePrivileges;
use marigram_opentsdb::{LastQuery, LookupQuery, ReadRequest, SuggestQuery};
use marigram_service::{Language, LanguageRequest, Result, ServiceError, Session};
use marigram_sql::front_end::{FrontEnd, Script, StatementContext, StatementRows};
use marigram_sql::{SqlError, SqlResult};
use std::sync::Arc;

/// The front end for OpenTSDB's requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenTsdbQueries;

impl FrontEnd for OpenTsdbQueries {
    fn language(&self) -> Language {
        Language::OpenTsdb
    }

    fn parse(&self, session: &Session, request: &LanguageRequest) -> Result<Arc<dyn Script>> {
        let database = &session.database;
        if !session.rights.allow(database, DatabasePrivileges::READ) {
            let user = &session.identity.user;
            return Err(ServiceError::Forbidden(format!(
                "\"{user}\" user is not authorized: this needs READ on database \"{database}\""
            )));
        }
        let request = ReadRequest::from_text(&request.text).map_err(invalid)?;
        Ok(Arc::new(match request {
            ReadRequest::Query(query) => {
                // Its times are numbers: it does not depend on the time.
                let parts = query.check(0).map_err(invalid)?;
                let descriptions = if query.shows_query() {
                    query.descriptions().into_iter().map(Some).collect()
                } else {
                    vec![None; parts.len()]
                };
                let shows_tsuids = query.shows_tsuids();
                let parts = parts.into_iter().zip(descriptions);
                OpenTsdbScript::Query(
                    parts
                        .map(|(query, description)| QueryPart {
                            query: Arc::new(query),
                            description,
                            shows_tsuids,
                        })
                        .collect(),
                )
            }
            ReadRequest::Last(query) => OpenTsdbScript::Last(query),
            ReadRequest::Suggest(query) => OpenTsdbScript::Suggest(query),
            ReadRequest::Lookup(query) => OpenTsdbScript::Lookup(query),
        }))
    }
}

enum OpenTsdbScript {
    Query(Vec<QueryPart>),
    Last(LastQuery),
    Suggest(SuggestQuery),
    Lookup(LookupQuery),
}

#[async_trait]
impl Script for OpenTsdbScript {
    fn len(&self) -> usize {
        match self {
            Self::Query(parts) => parts.len(),
            Self::Last(_) | Self::Suggest(_) | Self::Lookup(_) => 1,
        }
    }

    async fn execute(
        &self,
        statement: usize,
        context: &StatementContext,
    ) -> SqlResult<StatementRows> {
        let run = OpenTsdbRun::new(context).await?;
        match self {
            Self::Query(parts) => match parts.get(statement) {
                Some(part) => series_rows(&run, part).await,
                None => Err(SqlError::invalid("42601", "there is no such query")),
            },
            Self::Last(query) => last_points(&run, query).await,
            Self::Suggest(query) => suggest(&run, query),
            Self::Lookup(query) => lookup(&run, query),
        }
    }
}
