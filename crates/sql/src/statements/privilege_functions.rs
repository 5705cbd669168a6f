//! `has_table_privilege` and the like, for clients that are no administrators: what a client may do in a
//! database is what it may do with each of its tables. An administrator may do everything, which the
//! functions of the catalog say without looking.

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::cast::as_string_array;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use marigram_access::{AccessRights, DatabasePrivileges};
use marigram_functions::refused;
use marigram_service::Session;
use std::sync::Arc;

/// What a function asks about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum PrivilegeObject {
    Table,
    /// A column: one more argument after the table.
    Column,
    Schema,
    Database,
}

/// `has_…_privilege([user,] object, …, privileges)` in a session.
#[derive(Debug, PartialEq, Eq, Hash)]
struct HasPrivilege {
    name: &'static str,
    object: PrivilegeObject,
    user: String,
    database: String,
    rights: Arc<AccessRights>,
    signature: Signature,
}

/// The functions in a session of a client that is no administrator.
pub(crate) fn privilege_functions(session: &Session) -> Vec<ScalarUDF> {
    let functions = [
        ("has_table_privilege", PrivilegeObject::Table),
        ("has_any_column_privilege", PrivilegeObject::Table),
        ("has_column_privilege", PrivilegeObject::Column),
        ("has_schema_privilege", PrivilegeObject::Schema),
        ("has_database_privilege", PrivilegeObject::Database),
    ];
    let made = functions.into_iter().map(|(name, object)| {
        let least = if object == PrivilegeObject::Column {
            3
        } else {
            2
        };
        let counts = [least, least + 1].map(TypeSignature::Any).to_vec();
        ScalarUDF::from(HasPrivilege {
            name,
            object,
            user: session.identity.user.clone(),
            database: session.database.clone(),
            rights: Arc::clone(&session.rights),
            signature: Signature::one_of(counts, Volatility::Stable),
        })
    });
    made.collect()
}

impl HasPrivilege {
    /// Refuses questions about other users: a client that is no administrator does not know them.
    fn check_user(&self, user: &str) -> Result<()> {
        if user == self.user {
            return Ok(());
        }
        let message = "permission denied: the privileges of other users are for administrators";
        Err(refused("42501", message))
    }

    /// Whether the client has one of the privileges, which commas separate.
    fn answer(&self, object: &str, privileges: &str) -> Result<bool> {
        let database = self.database_of(object);
        let mut has_one = false;
        for privilege in privileges.split(',') {
            has_one |= self.has(database, &privilege.trim().to_ascii_uppercase())?;
        }
        Ok(has_one)
    }

    /// The database of an object: `plant.pump` is in another one. An oid is in that of the session.
    fn database_of<'a>(&'a self, object: &'a str) -> &'a str {
        match self.object {
            PrivilegeObject::Database if object.parse::<u32>().is_err() => object,
            PrivilegeObject::Table | PrivilegeObject::Column => match object.split_once('.') {
                Some((first, _))
                    if !["public", "pg_catalog", "information_schema"].contains(&first) =>
                {
                    first
                }
                _ => &self.database,
            },
            _ => &self.database,
        }
    }

    fn has(&self, database: &str, privilege: &str) -> Result<bool> {
        use PrivilegeObject::{Column, Database, Schema, Table};
        let (kind, may_grant) = match privilege.strip_suffix(" WITH GRANT OPTION") {
            Some(kind) => (kind, true),
            None => (privilege, false),
        };
        let wanted = match (self.object, kind) {
            (Table | Column, "SELECT") => DatabasePrivileges::READ,
            (Table | Column, "INSERT" | "UPDATE") | (Table, "DELETE" | "TRUNCATE") => {
                DatabasePrivileges::WRITE
            }
            (Table, "TRIGGER") | (Table | Column, "REFERENCES") | (Schema | Database, "CREATE") => {
                DatabasePrivileges::ALL
            }
            (Schema, "USAGE") | (Database, "CONNECT" | "TEMP" | "TEMPORARY") => {
                return Ok(!may_grant && self.rights.see(database));
            }
            _ => {
                let message = format!("unrecognized privilege type: \"{kind}\"");
                return Err(refused("22023", message));
            }
        };
        Ok(!may_grant && self.rights.allow(database, wanted))
    }
}

impl ScalarUDFImpl for HasPrivilege {
    fn name(&self) -> &'static str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_one = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
        let all_one = args.args.iter().all(is_one);
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let texts = arrays.iter().map(|array| cast(array, &DataType::Utf8));
        let texts = texts.collect::<std::result::Result<Vec<ArrayRef>, _>>()?;
        let texts = texts.iter().map(|array| as_string_array(array));
        let texts = texts.collect::<Result<Vec<_>>>()?;
        let after_object = if self.object == PrivilegeObject::Column {
            2
        } else {
            1
        };
        // Without a user, the arguments begin with the object.
        let object_at = texts.len() - after_object - 1;
        let rows = texts.first().map_or(0, Array::len);
        let mut answers = Vec::with_capacity(rows);
        for row in 0..rows {
            if texts.iter().any(|text| text.is_null(row)) {
                answers.push(None);
                continue;
            }
            if object_at > 0 {
                self.check_user(texts[0].value(row))?;
            }
            let (object, privileges) = (texts[object_at], texts[texts.len() - 1]);
            let answer = self.answer(object.value(row), privileges.value(row))?;
            answers.push(Some(answer));
        }
        let answers: ArrayRef = Arc::new(BooleanArray::from(answers));
        Ok(if all_one {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&answers, 0)?)
        } else {
            ColumnarValue::Array(answers)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marigram_service::Identity;

    fn function(object: PrivilegeObject) -> HasPrivilege {
        let databases = [
            ("plant".to_owned(), DatabasePrivileges::READ),
            ("mill".to_owned(), DatabasePrivileges::ALL),
        ];
        let rights = AccessRights {
            is_administrator: false,
            databases: databases.into(),
        };
        HasPrivilege {
            name: "has_table_privilege",
            object,
            user: "eva".to_owned(),
            database: "plant".to_owned(),
            rights: Arc::new(rights),
            signature: Signature::any(2, Volatility::Stable),
        }
    }

    #[test]
    fn privileges_are_those_of_the_database() {
        let table = function(PrivilegeObject::Table);
        let may = |object: &str, privileges: &str| table.answer(object, privileges).unwrap();
        assert!(may("pump", "select"));
        assert!(may("public.pump", "SELECT"));
        assert!(may("16385", "SELECT"));
        assert!(!may("pump", "INSERT"));
        assert!(may("pump", "INSERT, SELECT"));
        assert!(!may("pump", "SELECT WITH GRANT OPTION"));
        assert!(may("mill.pump", "DELETE"));
        assert!(!may("other.pump", "SELECT"));
        assert!(table.answer("pump", "FLY").is_err());
        let database = function(PrivilegeObject::Database);
        assert!(database.answer("mill", "CREATE").unwrap());
        assert!(!database.answer("plant", "CREATE").unwrap());
        assert!(database.answer("plant", "CONNECT").unwrap());
        assert!(!database.answer("other", "CONNECT").unwrap());
    }

    #[test]
    fn other_users_are_not_told_about() {
        let table = function(PrivilegeObject::Table);
        assert!(table.check_user("eva").is_ok());
        assert!(table.check_user("adam").is_err());
        let session = Session::new("plant", Identity::owner("eva"));
        assert_eq!(privilege_functions(&session).len(), 5);
    }
}
