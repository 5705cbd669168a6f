//! `ALTER TABLE`, as both grammars read it.

use super::columns::{ColumnWithConstraints, column};
use super::conditions::default;
use super::constraints::table_constraint;
use super::tokens::{is_word, parser_of, skip_rest, without_identity_options};
use super::types::declared_type;
use crate::dialect::ddl::{self, constraints::refuse_alteration, is_cast_to};
use crate::dialect::identifiers::{accept_word, accept_words, end, parse_target, target_of};
use crate::dialect::statement::{
    Command, GrammarError, ReferenceChange, ReferenceStatement, TableReferenceName,
};
use crate::error::{SqlError, SqlResult};
use crate::name_forms::fold_case;
use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, AlterTableOperation, ColumnDef, DropBehavior, Ident, ObjectName,
    RenameTableNameKind,
};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use marigram_reference::{NewConstraint, ReferenceAlteration};

/// `ALTER TABLE [IF EXISTS] [ONLY] name change, …`. `tokens` are those of the whole statement, which `parser`
/// begins to read.
///
/// # Errors
/// If neither grammar has such a statement.
pub(crate) fn alter_table(
    parser: &mut Parser<'_>,
    tokens: Vec<TokenWithSpan>,
) -> SqlResult<Command> {
    let series = ddl::alter_table(parser).and_then(|command| {
        end(parser)?;
        Ok(command)
    });
    let mut ahead = parser_of(tokens.clone());
    let (target, if_exists) = altered(&mut ahead)?;
    let reference = alterations(&target, tokens).map(ReferenceChange::Alter);
    skip_rest(parser);
    change(target, if_exists, series, reference)
}

/// A statement that both grammars have read.
///
/// # Errors
/// If it is no statement of either.
pub(super) fn change(
    target: TableReferenceName,
    if_exists: bool,
    series: SqlResult<Command>,
    reference: SqlResult<ReferenceChange>,
) -> SqlResult<Command> {
    let series = series.map(Box::new).map_err(GrammarError::from);
    let reference = reference.map_err(GrammarError::from);
    if let (Err(error), Err(other)) = (&series, &reference)
        && error.is_syntax()
        && other.is_syntax()
    {
        return Err(error.clone().into());
    }
    Ok(Command::Reference(ReferenceStatement::Change {
        target,
        if_exists,
        series,
        reference,
    }))
}

/// `ALTER TABLE [IF EXISTS] [ONLY] name`
fn altered(parser: &mut Parser<'_>) -> SqlResult<(TableReferenceName, bool)> {
    accept_words(parser, &["ALTER", "TABLE"]);
    let if_exists = accept_words(parser, &["IF", "EXISTS"]);
    accept_word(parser, "ONLY");
    let target = parse_target(parser)?;
    // The name may be followed by a star: tables do not inherit.
    let _ = parser.consume_token(&Token::Mul);
    Ok((target, if_exists))
}

/// The changes as the grammar of reference tables reads them.
fn alterations(
    target: &TableReferenceName,
    tokens: Vec<TokenWithSpan>,
) -> SqlResult<Vec<ReferenceAlteration>> {
    let mut parser = parser_of(without_identity_options(tokens)?);
    let parser = &mut parser;
    altered(parser)?;
    let mut changes = Vec::new();
    loop {
        if !is_word(Some(&parser.peek_nth_token(1)), "CONSTRAINT") {
            refuse_alteration(parser)?;
        }
        refuse_settings(parser)?;
        let operation = parser.parse_alter_table_operation()?;
        changes.extend(read(target, operation)?);
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    end(parser)?;
    Ok(changes)
}

/// Refuses `SET (…)`.
fn refuse_settings(parser: &Parser<'_>) -> SqlResult<()> {
    let first = parser.peek_token();
    if is_word(Some(&first), "SET") && parser.peek_nth_token(1).token == Token::LParen {
        let message = "a reference table has no settings";
        return Err(SqlError::named("0A000", "SET", message));
    }
    Ok(())
}

/// One change, which may be several: a column with constraints, and a primary key, whose columns are
/// required.
fn read(
    target: &TableReferenceName,
    operation: AlterTableOperation,
) -> SqlResult<Vec<ReferenceAlteration>> {
    use ReferenceAlteration as To;
    let database = target.database.as_ref();
    let one = match operation {
        AlterTableOperation::AddColumn {
            column_def,
            if_not_exists,
            ..
        } => return added_column(&column_def, if_not_exists, database),
        AlterTableOperation::AddConstraint { constraint, .. } => {
            let added = table_constraint(&constraint, database)?;
            return Ok(with_required_columns(added));
        }
        AlterTableOperation::DropColumn {
            column_names,
            if_exists,
            drop_behavior,
            ..
        } => {
            let dropped = column_names.iter().map(|name| To::DropColumn {
                name: fold_case(name),
                if_exists,
                cascades: drop_behavior == Some(DropBehavior::Cascade),
            });
            return Ok(dropped.collect());
        }
        AlterTableOperation::RenameTable {
            table_name: RenameTableNameKind::To(name),
        } => renamed(target, &name)?,
        AlterTableOperation::RenameColumn {
            old_column_name,
            new_column_name,
        } => To::RenameColumn(fold_case(&old_column_name), fold_case(&new_column_name)),
        AlterTableOperation::RenameConstraint { old_name, new_name } => {
            To::RenameConstraint(fold_case(&old_name), fold_case(&new_name))
        }
        AlterTableOperation::DropConstraint {
            if_exists,
            name,
            drop_behavior,
        } => To::DropConstraint {
            name: fold_case(&name),
            if_exists,
            cascades: drop_behavior == Some(DropBehavior::Cascade),
        },
        AlterTableOperation::AlterColumn { column_name, op } => alter_column(&column_name, op)?,
        // A constraint that was added was checked.
        AlterTableOperation::ValidateConstraint { .. } | AlterTableOperation::OwnerTo { .. } => {
            To::Nothing
        }
        other => {
            let message = format!("ALTER TABLE … {other} is not supported for a reference table");
            return Err(SqlError::unsupported(message));
        }
    };
    Ok(vec![one])
}

/// A new column, and the constraints in its definition.
fn added_column(
    written: &ColumnDef,
    if_not_exists: bool,
    database: Option<&String>,
) -> SqlResult<Vec<ReferenceAlteration>> {
    let ColumnWithConstraints {
        column,
        constraints,
    } = column(written, database)?;
    let added = ReferenceAlteration::AddColumn {
        column,
        if_not_exists,
    };
    let constraints = constraints
        .into_iter()
        .map(ReferenceAlteration::AddConstraint);
    Ok(std::iter::once(added).chain(constraints).collect())
}

/// A new name for a table.
fn renamed(target: &TableReferenceName, name: &ObjectName) -> SqlResult<ReferenceAlteration> {
    let parts = name.0.iter().map(|part| part.as_ident().map(fold_case));
    let parts: Option<Vec<String>> = parts.collect();
    match parts.and_then(|parts| target_of(&parts)) {
        Some(to) if to.database.is_none() || to.database == target.database => {
            Ok(ReferenceAlteration::Rename(to.table))
        }
        _ => {
            let message = format!("a table stays in its database, and '{name}' is in another");
            Err(SqlError::named("0A000", &name.to_string(), message))
        }
    }
}

/// A new constraint. The columns of a primary key have a value in every row, which is checked first.
fn with_required_columns(added: NewConstraint) -> Vec<ReferenceAlteration> {
    let mut changes = Vec::new();
    if let NewConstraint::Key {
        columns,
        is_primary: true,
        ..
    } = &added
    {
        changes.extend(columns.iter().map(|column| ReferenceAlteration::Nullable {
            column: column.clone(),
            is_nullable: false,
        }));
    }
    changes.push(ReferenceAlteration::AddConstraint(added));
    changes
}

fn alter_column(name: &Ident, operation: AlterColumnOperation) -> SqlResult<ReferenceAlteration> {
    let column = fold_case(name);
    Ok(match operation {
        AlterColumnOperation::SetNotNull => ReferenceAlteration::Nullable {
            column,
            is_nullable: false,
        },
        AlterColumnOperation::DropNotNull => ReferenceAlteration::Nullable {
            column,
            is_nullable: true,
        },
        AlterColumnOperation::SetDefault { value } => {
            let default = default(&column, &value)?;
            ReferenceAlteration::Default { column, default }
        }
        AlterColumnOperation::DropDefault => ReferenceAlteration::Default {
            column,
            default: None,
        },
        AlterColumnOperation::SetDataType {
            data_type, using, ..
        } => {
            if using.is_some_and(|using| !is_cast_to(&using, &column, &data_type)) {
                let message = format!(
                    "USING may only be {column}::{data_type}; for others, ADD a column, UPDATE it, and DROP \
                     the old one"
                );
                return Err(SqlError::named("0A000", "USING", message));
            }
            let declared = declared_type(&column, &data_type)?;
            if declared.is_serial {
                let message = format!("column '{column}': {data_type} is no type to change to");
                return Err(SqlError::named("0A000", &column, message));
            }
            ReferenceAlteration::Type {
                column,
                kind: declared.kind,
            }
        }
        AlterColumnOperation::AddGenerated { .. } => {
            let message = format!(
                "column '{column}': a column that exists becomes no identity; ADD a column, or CREATE the \
                 table with it"
            );
            return Err(SqlError::named("0A000", &column, message));
        }
    })
}

#[cfg(test)]
mod tests;
