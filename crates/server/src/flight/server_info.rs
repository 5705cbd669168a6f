//! What the server tells about itself: `GetSqlInfo` and `GetXdbcTypeInfo`.

use arrow_flight::error::FlightError;
use arrow_flight::sql::metadata::{
    SqlInfoData, SqlInfoDataBuilder, XdbcTypeInfo, XdbcTypeInfoData, XdbcTypeInfoDataBuilder,
};
use arrow_flight::sql::{
    Nullable, Searchable, SqlInfo, SqlSupportedCaseSensitivity, SqlSupportedTransaction,
    XdbcDataType,
};

/// What is the same for every client.
pub(super) struct ServerInfo {
    pub sql: SqlInfoData,
    pub types: XdbcTypeInfoData,
}

impl ServerInfo {
    /// Collects it.
    ///
    /// # Errors
    /// Only for a bug.
    pub(super) fn new() -> Result<Self, FlightError> {
        Ok(Self {
            sql: sql_info()?,
            types: type_info()?,
        })
    }
}

fn sql_info() -> Result<SqlInfoData, FlightError> {
    let mut info = SqlInfoDataBuilder::new();
    info.append(SqlInfo::FlightSqlServerName, "Marigram");
    info.append(SqlInfo::FlightSqlServerVersion, env!("CARGO_PKG_VERSION"));
    info.append(SqlInfo::FlightSqlServerArrowVersion, arrow::ARROW_VERSION);
    info.append(SqlInfo::FlightSqlServerReadOnly, false);
    info.append(SqlInfo::FlightSqlServerSql, true);
    info.append(SqlInfo::FlightSqlServerSubstrait, false);
    let transactions = SqlSupportedTransaction::None as i32;
    info.append(SqlInfo::FlightSqlServerTransaction, transactions);
    info.append(SqlInfo::FlightSqlServerCancel, true);
    info.append(SqlInfo::FlightSqlServerBulkIngestion, true);
    info.append(SqlInfo::FlightSqlServerIngestTransactionsSupported, false);
    info.append(SqlInfo::FlightSqlServerStatementTimeout, 0_i32);
    info.append(SqlInfo::FlightSqlServerTransactionTimeout, 0_i32);
    // Catalogs are databases, with one schema each.
    info.append(SqlInfo::SqlDdlCatalog, true);
    info.append(SqlInfo::SqlDdlSchema, false);
    info.append(SqlInfo::SqlDdlTable, true);
    let lower = SqlSupportedCaseSensitivity::SqlCaseSensitivityLowercase as i32;
    info.append(SqlInfo::SqlIdentifierCase, lower);
    info.append(SqlInfo::SqlIdentifierQuoteChar, "\"");
    // Quoted names keep their case, for which there is no value.
    let exact = SqlSupportedCaseSensitivity::SqlCaseSensitivityUnknown as i32;
    info.append(SqlInfo::SqlQuotedIdentifierCase, exact);
    info.append(SqlInfo::SqlAllTablesAreSelectable, true);
    info.append(SqlInfo::SqlTransactionsSupported, false);
    info.append(SqlInfo::SqlCatalogAtStart, true);
    info.append(SqlInfo::SqlCatalogTerm, "database");
    info.append(SqlInfo::SqlSchemaTerm, "schema");
    info.append(SqlInfo::SqlCorrelatedSubqueriesSupported, true);
    info.build()
}

/// A type of columns.
fn column_type(name: &str, kind: XdbcDataType, size: i32, quote: Option<&str>) -> XdbcTypeInfo {
    let is_number = quote.is_none() && kind != XdbcDataType::XdbcBit;
    XdbcTypeInfo {
        type_name: name.to_owned(),
        data_type: kind,
        column_size: Some(size).filter(|size| *size > 0),
        literal_prefix: quote.map(str::to_owned),
        literal_suffix: quote.map(|_| "'".to_owned()),
        nullable: Nullable::NullabilityNullable,
        case_sensitive: kind == XdbcDataType::XdbcVarchar,
        searchable: Searchable::Full,
        unsigned_attribute: is_number.then(|| name.contains("UNSIGNED")),
        auto_increment: Some(false),
        local_type_name: Some(name.to_owned()),
        sql_data_type: kind,
        num_prec_radix: is_number.then_some(2),
        ..XdbcTypeInfo::default()
    }
}

fn type_info() -> Result<XdbcTypeInfoData, FlightError> {
    let mut types = XdbcTypeInfoDataBuilder::new();
    for (name, kind, size, quote) in [
        ("BOOLEAN", XdbcDataType::XdbcBit, 1, None),
        ("INT", XdbcDataType::XdbcInteger, 32, None),
        ("BIGINT", XdbcDataType::XdbcBigint, 64, None),
        ("BIGINT UNSIGNED", XdbcDataType::XdbcBigint, 64, None),
        ("REAL", XdbcDataType::XdbcReal, 24, None),
        ("DOUBLE", XdbcDataType::XdbcDouble, 53, None),
        ("STRING", XdbcDataType::XdbcVarchar, 0, Some("'")),
        ("BYTES", XdbcDataType::XdbcVarbinary, 0, Some("'\\x")),
        ("TIMESTAMP", XdbcDataType::XdbcTimestamp, 29, Some("'")),
    ] {
        types.append(column_type(name, kind, size, quote));
    }
    types.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_can_be_collected() {
        let info = ServerInfo::new().unwrap();
        let name = info.sql.record_batch([SqlInfo::FlightSqlServerName as u32]);
        assert_eq!(name.unwrap().num_rows(), 1);
        assert_eq!(info.types.record_batch(None).unwrap().num_rows(), 9);
    }
}
