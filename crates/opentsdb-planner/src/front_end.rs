//! OpenTSDB's requests as one of the service's query languages.

use crate::annotations::{annotations, shown_annotations};
use crate::expressions::expressions;
use crate::last_points::last_points;
use crate::names::{lookup, suggest};
use crate::series_rows::{QueryPart, series_rows};
use crate::statement::{OpenTsdbRun, invalid};
use async_trait::async_trait;
use marigram_access::DatabasePrivileges;
use marigram_opentsdb::{
    AnnotationQuery, CheckedExpressions, CheckedQuery, LastQuery, LookupQuery, QueryFault,
    ReadRequest, SuggestQuery, TsQuery,
};
use marigram_service::{Language, LanguageRequest, Result, ServiceError, Session};
use marigram_sql::front_end::{FrontEnd, Script, StatementContext, StatementRows};
use marigram_sql::{SqlError, SqlResult};
use serde_json::Value;
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
                OpenTsdbScript::Query(AskedParts::new(&query).map_err(invalid)?)
            }
            ReadRequest::Last(query) => OpenTsdbScript::Last(query),
            ReadRequest::Suggest(query) => OpenTsdbScript::Suggest(query),
            ReadRequest::Lookup(query) => OpenTsdbScript::Lookup(query),
            ReadRequest::Expressions(query) => {
                OpenTsdbScript::Expressions(query.check(0).map_err(invalid)?)
            }
            ReadRequest::Annotations(query) => OpenTsdbScript::Annotations(query),
        }))
    }
}

enum OpenTsdbScript {
    Query(AskedParts),
    Last(LastQuery),
    Suggest(SuggestQuery),
    Lookup(LookupQuery),
    Expressions(CheckedExpressions),
    Annotations(AnnotationQuery),
}

/// The parts of a query, and what their answers show beside the points.
struct AskedParts {
    parts: Vec<(Arc<CheckedQuery>, Option<Value>)>,
    shows_tsuids: bool,
    /// The annotations of the series, and those of all series.
    shows_annotations: (bool, bool),
}

impl AskedParts {
    fn new(query: &TsQuery) -> std::result::Result<Self, QueryFault> {
        // Its times are numbers: it does not depend on the time.
        let parts = query.check(0)?;
        let descriptions = if query.shows_query() {
            query.descriptions().into_iter().map(Some).collect()
        } else {
            vec![None; parts.len()]
        };
        let parts = parts.into_iter().map(Arc::new);
        Ok(Self {
            parts: parts.zip(descriptions).collect(),
            shows_tsuids: query.shows_tsuids(),
            shows_annotations: (query.shows_annotations(), query.shows_global_annotations()),
        })
    }

    /// Answers a part.
    async fn execute(&self, run: &OpenTsdbRun<'_>, place: usize) -> SqlResult<StatementRows> {
        let part = self.parts.get(place);
        let (query, description) =
            part.ok_or_else(|| SqlError::invalid("42601", "there is no such query"))?;
        let part = QueryPart {
            query: Arc::clone(query),
            description: description.clone(),
            shows_tsuids: self.shows_tsuids,
            annotations: shown_annotations(run, query, self.shows_annotations).await?,
        };
        series_rows(run, &part).await
    }
}

#[async_trait]
impl Script for OpenTsdbScript {
    fn len(&self) -> usize {
        match self {
            Self::Query(asked) => asked.parts.len(),
            _ => 1,
        }
    }

    async fn execute(
        &self,
        statement: usize,
        context: &StatementContext,
    ) -> SqlResult<StatementRows> {
        let run = OpenTsdbRun::new(context).await?;
        match self {
            Self::Query(asked) => asked.execute(&run, statement).await,
            Self::Last(query) => last_points(&run, query).await,
            Self::Suggest(query) => suggest(&run, query),
            Self::Lookup(query) => lookup(&run, query),
            Self::Expressions(query) => expressions(&run, query).await,
            Self::Annotations(query) => annotations(&run, query).await,
        }
    }
}
