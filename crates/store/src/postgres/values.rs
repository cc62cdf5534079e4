//! Values and rows of PostgreSQL. The type of a column or parameter decides the size of an integer.

use std::error::Error;

use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::error::PgError;
use crate::value::{Row, Value};

/// Reads the columns of rows.
pub(super) fn rows(found: &[tokio_postgres::Row]) -> Result<Vec<Row>, PgError> {
    let row = |row: &tokio_postgres::Row| {
        let columns = (0..row.len()).map(|column| row.try_get(column));
        Ok(Row::new(columns.collect::<Result<_, _>>()?))
    };
    found.iter().map(row).collect()
}

impl<'a> FromSql<'a> for Value {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(match *ty {
            Type::BOOL => bool::from_sql(ty, raw)?.into(),
            Type::INT2 => Self::Integer(i16::from_sql(ty, raw)?.into()),
            Type::INT4 => Self::Integer(i32::from_sql(ty, raw)?.into()),
            Type::INT8 => Self::Integer(i64::from_sql(ty, raw)?),
            Type::BYTEA | Type::UUID => Self::Bytes(raw.to_vec()),
            // The result of a function that is called for its effect.
            Type::VOID => Self::Null,
            _ => Self::Text(String::from_sql(ty, raw)?),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self::Null)
    }

    fn accepts(ty: &Type) -> bool {
        const BINARY: [Type; 7] =
            [Type::BOOL, Type::INT2, Type::INT4, Type::INT8, Type::BYTEA, Type::UUID, Type::VOID];
        BINARY.contains(ty) || <String as FromSql>::accepts(ty)
    }
}

impl ToSql for Value {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match (self, ty) {
            (Self::Null, _) => Ok(IsNull::Yes),
            (Self::Integer(number), &Type::BOOL) => (*number != 0).to_sql(ty, out),
            (Self::Integer(number), &Type::INT2) => i16::try_from(*number)?.to_sql(ty, out),
            // Bounds that are greater than the type bound nothing.
            (Self::Integer(number), &Type::INT4) => {
                i32::try_from(*number).unwrap_or(i32::MAX).to_sql(ty, out)
            }
            (Self::Integer(number), _) => number.to_sql(ty, out),
            (Self::Text(text), _) if text.contains('\0') => {
                text.replace('\0', "\u{fffd}").to_sql(ty, out)
            }
            (Self::Text(text), _) => text.to_sql(ty, out),
            (Self::Bytes(bytes), _) => bytes.to_sql(ty, out),
            (Self::List(values), _) => values.to_sql(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
