//! Adds, changes and removes rows. Each request is a transaction, or part of one that is a change set.

use super::filter::{Sql, key_values};
use super::model::{Column, Table, quoted};
use super::{Asked, JSON, Place, changed, failed, first_row, names, percent, rows, selected};
use crate::fault::Trouble;
use crate::service::Reply;
use serde_json::{Map, Value as Json};
use sql::{Dialect, Lease, Outcome, Parameter, Row};
use std::sync::Arc;

/// Columns with the values that they get.
type Given = Vec<(Column, Parameter)>;

impl Asked<'_> {
    /// The columns that a body gives, with their values.
    pub(super) fn given_columns(&self, table: &Table) -> Result<Given, Trouble> {
        let none = Map::new();
        let members = match &self.body {
            Some(Json::Object(members)) => members,
            None => &none,
            Some(_) => return Err(failed(400, "the body is not a JSON object")),
        };
        if let Some(name) = members.keys().find(|name| name.ends_with("@odata.bind")) {
            return Err(failed(501, format!("`{name}`: {}", super::LINKS_ARE_COLUMNS)));
        }
        let mut all = Vec::new();
        for (name, value) in members.iter().filter(|(name, _)| !name.contains('@')) {
            let unknown = || failed(400, format!("`{}` has no property `{name}`", table.name));
            let column = &table.columns[table.column(name).ok_or_else(unknown)?];
            all.push((column.clone(), rows::parameter(value, column).map_err(|why| failed(400, why))?));
        }
        Ok(all)
    }

    /// Whether the row is still the one that the client has read (`If-Match`), and may be there (`If-None-Match: *`). It cannot change until the
    /// transaction ends.
    async fn unchanged(&self, lease: &mut Lease, place: &Place<'_>) -> Result<(), Trouble> {
        let table = &place.table;
        let is_new = self.if_none_match.as_deref().is_some_and(|list| list.trim() == "*");
        if self.if_match.is_none() && !is_new {
            return Ok(());
        }
        let row = place.row(lease, &table.columns, true).await?;
        let key = place.key.as_deref().unwrap_or_default();
        match (row, &self.if_match) {
            (Some(_), _) if is_new => Err(failed(412, format!("`{}` has a row {key}", table.name))),
            (None, Some(_)) => Err(place.no_row()),
            (Some(row), Some(list)) if !rows::is_among(&rows::etag(&row, &table.columns), list) => {
                Err(failed(412, format!("the row {key} of `{}` is not as it was read", table.name)))
            }
            _ => Ok(()),
        }
    }

    /// Adds a row. `key`: values that the path gives.
    pub(super) async fn create(
        &self,
        lease: &mut Lease,
        place: &Place<'_>,
        key: Given,
    ) -> Result<Reply, Trouble> {
        self.options.check(&[])?;
        let (table, dialect) = (&place.table, lease.pool().dialect());
        let mut given = self.given_columns(table)?;
        for (column, value) in place.within.iter().chain(&key) {
            given.retain(|(other, _)| other.name != column.name);
            given.push((column.clone(), value.clone()));
        }
        let mut sql = Sql::new(table, dialect);
        sql.text = format!("INSERT INTO {} ", quoted(&table.name, dialect));
        let columns: Vec<Column> = given.iter().map(|(column, _)| column.clone()).collect();
        match (given.is_empty(), dialect) {
            (true, Dialect::MySql) => sql.text += "() VALUES ()",
            (true, _) => sql.text += "DEFAULT VALUES",
            (false, _) => {
                sql.text += &format!("({}) VALUES (", names(&columns, dialect));
                for (number, (column, parameter)) in given.iter().enumerate() {
                    sql.text.push_str(if number > 0 { ", " } else { "" });
                    sql.value(parameter.clone(), column);
                }
                sql.text.push(')');
            }
        }
        let row = if dialect == Dialect::MySql {
            let done = changed(lease, &sql, &table.name).await?;
            self.created(lease, table, &given, done).await?
        } else {
            sql.text += &format!(" RETURNING {}", selected(&table.columns, dialect));
            first_row(lease, &sql, &table.name).await?
        };
        let Some(row) = row else { return Ok(Reply::nothing(204)) };
        let is_minimal = self.preference("return") == Some("minimal");
        let reply = match is_minimal {
            true => Reply::nothing(204).with("Preference-Applied", "return=minimal"),
            false => Reply::new(201, JSON, self.written(table, &row)),
        };
        let reply = reply.with("ETag", &rows::etag(&row, &table.columns));
        Ok(match self.address(table, &row) {
            Some(place) => reply.with("OData-EntityId", &place).with("Location", &place),
            None => reply,
        })
    }

    /// The address of a row; `None`: its table has no key.
    fn address(&self, table: &Table, row: &Row) -> Option<String> {
        let mut key = Vec::new();
        for (value, column) in row.values.iter().zip(&table.columns).filter(|(_, column)| column.key) {
            let text = rows::plain(value, column.edm).unwrap_or_default();
            let is_text = matches!(value, sql::Value::Text(_)) && column.cast.is_none();
            let text = if is_text { format!("'{}'", text.replace('\'', "''")) } else { text };
            key.push((column.name.as_str(), percent(&text)));
        }
        let key = match key.as_slice() {
            [] => return None,
            [(_, value)] => value.clone(),
            all => all.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(","),
        };
        Some(format!("{}/{}({key})", self.base, table.name))
    }

    /// The row that was inserted into MySQL: by the key that was given, or by the generated one.
    async fn created(
        &self,
        lease: &mut Lease,
        table: &Table,
        given: &[(Column, Parameter)],
        done: Outcome,
    ) -> Result<Option<Row>, Trouble> {
        let dialect = lease.pool().dialect();
        let mut sql = Sql::new(table, dialect);
        sql.text = format!(
            "SELECT {} FROM {} WHERE ",
            selected(&table.columns, dialect),
            quoted(&table.name, dialect)
        );
        for (number, column) in table.keys().enumerate() {
            let value = given.iter().find(|(c, _)| c.name == column.name).map(|(_, v)| v.clone());
            let made = || done.generated.map(Parameter::BigInt);
            let Some(value) = value.filter(|v| !matches!(v, Parameter::Null(_))).or_else(made) else {
                return Ok(None);
            };
            sql.text.push_str(if number > 0 { " AND " } else { "" });
            sql.name(column);
            sql.text.push_str(" = ");
            sql.value(value, column);
        }
        if table.keys().next().is_none() {
            return Ok(None);
        }
        first_row(lease, &sql, &table.name).await
    }

    /// Changes a row; one that is not there is added. `resets`: columns that neither the body nor the path gives get the defaults of a new row.
    pub(super) async fn change(
        &self,
        lease: &mut Lease,
        place: &Place<'_>,
        given: Given,
        resets: bool,
    ) -> Result<Reply, Trouble> {
        self.options.check(&[])?;
        let (table, dialect) = (&place.table, lease.pool().dialect());
        self.unchanged(lease, place).await?;
        // The key does not change.
        let given: Given = given.into_iter().filter(|(column, _)| !column.key).collect();
        let mut sql = Sql::new(table, dialect);
        sql.text = format!("UPDATE {} SET ", quoted(&table.name, dialect));
        let mut count = 0;
        for column in table.columns.iter().filter(|c| !c.key) {
            let value = given.iter().find(|(c, _)| c.name == column.name);
            let is_of_path = place.within.iter().any(|(c, _)| c.name == column.name);
            if value.is_none() && (!resets || is_of_path) {
                continue;
            }
            sql.text.push_str(if count > 0 { ", " } else { "" });
            count += 1;
            sql.name(column);
            sql.text.push_str(" = ");
            match value {
                Some((column, parameter)) => sql.value(parameter.clone(), column),
                None if dialect != Dialect::Sqlite => sql.text.push_str("DEFAULT"),
                None if column.nullable => sql.text.push_str("NULL"),
                None => return Err(failed(400, format!("`{}` is missing", column.name))),
            }
        }
        let is_there = if count == 0 {
            place.row(lease, &table.columns, false).await?.is_some()
        } else {
            place.condition(&mut sql, " WHERE ")?;
            changed(lease, &sql, &table.name).await?.affected > 0
        };
        if !is_there {
            return self.add(lease, place).await;
        }
        if self.preference("return") != Some("representation") {
            return Ok(Reply::nothing(204));
        }
        // The change may have led it away from the link of the path.
        let within = place.within.iter().map(|(column, value)| {
            let value = given.iter().find(|(c, _)| c.name == column.name).map_or(value, |(_, value)| value);
            (column.clone(), value.clone())
        });
        let now =
            Place { table: Arc::clone(table), within: within.collect(), key: place.key.clone(), ..*place };
        let row = now.row(lease, &table.columns, false).await?.ok_or_else(|| place.no_row())?;
        let reply = Reply::new(200, JSON, self.written(table, &row));
        let reply = reply.with("ETag", &rows::etag(&row, &table.columns));
        Ok(reply.with("Preference-Applied", "return=representation"))
    }

    /// Adds the row of a key that a change has not found, unless it should be one that the client has read.
    async fn add(&self, lease: &mut Lease, place: &Place<'_>) -> Result<Reply, Trouble> {
        let Some(key) = place.key.as_ref().filter(|_| self.if_match.is_none() && place.rest.is_empty())
        else {
            return Err(place.no_row());
        };
        let key = key_values(&place.table, key).map_err(|why| failed(400, why))?;
        let key = key.into_iter().map(|(column, value)| (column.clone(), value)).collect();
        self.create(lease, place, key).await
    }

    /// Sets one column: `{"value": …}`, or NULL for DELETE.
    pub(super) async fn set_property(
        &self,
        lease: &mut Lease,
        place: &Place<'_>,
        property: &str,
    ) -> Result<Reply, Trouble> {
        let table = &place.table;
        let unknown = || failed(404, format!("`{}` has no property `{property}`", table.name));
        let column = &table.columns[table.column(property).ok_or_else(unknown)?];
        if column.key {
            return Err(failed(400, format!("`{property}` is part of the key, which does not change")));
        }
        let value = match (&self.body, self.method.as_str()) {
            (_, "DELETE") => &Json::Null,
            (Some(Json::Object(members)), _) if members.contains_key("value") => &members["value"],
            _ => return Err(failed(400, "the body is not like {\"value\": …}")),
        };
        let value = rows::parameter(value, column).map_err(|why| failed(400, why))?;
        self.change(lease, place, vec![(column.clone(), value)], false).await
    }

    pub(super) async fn remove(&self, lease: &mut Lease, place: &Place<'_>) -> Result<Reply, Trouble> {
        self.options.check(&[])?;
        let (table, dialect) = (&place.table, lease.pool().dialect());
        self.unchanged(lease, place).await?;
        let mut sql = Sql::new(table, dialect);
        sql.text = format!("DELETE FROM {}", quoted(&table.name, dialect));
        place.condition(&mut sql, " WHERE ")?;
        match changed(lease, &sql, &table.name).await?.affected {
            0 => Err(place.no_row()),
            _ => Ok(Reply::nothing(204)),
        }
    }
}
