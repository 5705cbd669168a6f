//! Declares a structure of Thrift: its fields, and how it is read and written.

/// Declares structures. Each field has its number, `required` or `optional`, its name and its type. A
/// field of another type than declared is skipped, as one that is not declared.
macro_rules! wire_struct {
    ($($(#[$meta:meta])* $name:ident<$life:lifetime> { $($fields:tt)* })*) => {
        $(wire_struct!(@one [$life] [$name<$life>] [$name] [$(#[$meta])*] { $($fields)* });)*
    };
    ($($(#[$meta:meta])* $name:ident { $($fields:tt)* })*) => {
        $(wire_struct!(@one ['frame] [$name] [$name] [$(#[$meta])*] { $($fields)* });)*
    };
    (@one [$life:lifetime] [$($full:tt)*] [$name:ident] [$(#[$meta:meta])*] {
        $($(#[$field_meta:meta])* $id:literal $need:ident $field:ident: $kind:ty,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $($full)* {
            $($(#[$field_meta])* pub $field: wire_struct!(@type $need $kind),)*
        }

        impl<$life> $crate::wire::WireRead<$life> for $($full)* {
            const TYPE: $crate::wire::WireType = $crate::wire::WireType::Struct;

            fn read(
                reader: &mut $crate::wire::WireReader<$life>,
            ) -> Result<Self, $crate::wire::WireFault> {
                $(let mut $field: Option<$kind> = None;)*
                reader.fields(|reader, id, kind| {
                    match id {
                        $($id if kind == <$kind as $crate::wire::WireRead>::TYPE => {
                            $field = Some($crate::wire::WireRead::read(reader)?);
                        })*
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?;
                Ok(Self { $($field: wire_struct!(@value $need $name $field),)* })
            }
        }

        impl<$life> $crate::wire::WireWrite for $($full)* {
            const TYPE: $crate::wire::WireType = $crate::wire::WireType::Struct;

            fn write(&self, writer: &mut $crate::wire::WireWriter) {
                writer.structure(|writer| {
                    $(wire_struct!(@write $need writer $id self.$field);)*
                });
            }
        }
    };
    (@type required $kind:ty) => { $kind };
    (@type optional $kind:ty) => { Option<$kind> };
    (@value required $name:ident $field:ident) => {
        $field.ok_or($crate::wire::WireFault::MissingField {
            structure: stringify!($name),
            field: stringify!($field),
        })?
    };
    (@value optional $name:ident $field:ident) => { $field };
    (@write required $writer:ident $id:literal $value:expr) => {
        $writer.field($id, &$value)
    };
    (@write optional $writer:ident $id:literal $value:expr) => {
        if let Some(value) = &$value {
            $writer.field($id, value);
        }
    };
}

pub(crate) use wire_struct;
