//! The tokens and keywords of the language, and their names in errors.

/// A keyword. An identifier that equals one, in any case, must be in double quotes.
macro_rules! keywords {
    ($($name:ident $text:literal)*) => {
        /// A reserved word, written in any mix of cases.
        #[expect(missing_docs, reason = "each keyword is its own description")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Keyword { $($name,)* }

        /// Every keyword with its text, in the order of the texts.
        const KEYWORDS: &[(&str, Keyword)] = &[$(($text, Keyword::$name),)*];

        impl Keyword {
            /// The keyword in capitals, as errors show it.
            pub const fn text(self) -> &'static str {
                match self { $(Keyword::$name => $text,)* }
            }
        }
    };
}

keywords! {
    All "ALL" Alter "ALTER" Analyze "ANALYZE" And "AND" Any "ANY" As "AS" Asc "ASC"
    Begin "BEGIN" By "BY" Cardinality "CARDINALITY" Continuous "CONTINUOUS" Create "CREATE"
    Database "DATABASE" Databases "DATABASES" Default "DEFAULT" Delete "DELETE" Desc "DESC"
    Destinations "DESTINATIONS" Diagnostics "DIAGNOSTICS" Distinct "DISTINCT" Drop "DROP"
    Duration "DURATION" End "END" Every "EVERY" Exact "EXACT" Explain "EXPLAIN"
    False "FALSE" Field "FIELD" For "FOR" From "FROM" Grant "GRANT" Grants "GRANTS"
    Group "GROUP" Groups "GROUPS" In "IN" Inf "INF" Insert "INSERT" Into "INTO" Key "KEY"
    Keys "KEYS" Kill "KILL" Limit "LIMIT" Measurement "MEASUREMENT"
    Measurements "MEASUREMENTS" Name "NAME" Offset "OFFSET" On "ON" Or "OR" Order "ORDER"
    Password "PASSWORD" Policies "POLICIES" Policy "POLICY" Privileges "PRIVILEGES"
    Queries "QUERIES" Query "QUERY" Read "READ" Replication "REPLICATION"
    Resample "RESAMPLE" Retention "RETENTION" Revoke "REVOKE" Select "SELECT"
    Series "SERIES" Set "SET" Shard "SHARD" Shards "SHARDS" Show "SHOW" Slimit "SLIMIT"
    Soffset "SOFFSET" Stats "STATS" Subscription "SUBSCRIPTION"
    Subscriptions "SUBSCRIPTIONS" Tag "TAG" To "TO" True "TRUE" User "USER" Users "USERS"
    Values "VALUES" Where "WHERE" With "WITH" Write "WRITE"
}

/// Bytes of the longest keyword.
const KEYWORD_BYTES_MAX: usize = 13;

impl Keyword {
    /// The keyword that equals `word`, if there is one.
    pub fn lookup(word: &str) -> Option<Self> {
        let mut capitals = [0_u8; KEYWORD_BYTES_MAX];
        let capitals = capitals.get_mut(..word.len())?;
        capitals.copy_from_slice(word.as_bytes());
        capitals.make_ascii_uppercase();
        let found = KEYWORDS.binary_search_by(|(text, _)| text.as_bytes().cmp(capitals));
        found.ok().map(|index| KEYWORDS[index].1)
    }
}

/// A kind of token. The content of a token (a name, a number) is kept separately, as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InfluxQlToken {
    /// A character that begins nothing.
    Illegal,
    /// The end of the text.
    Eof,
    /// Blanks, tabs and line ends.
    Whitespace,
    /// `-- …` or `/* … */`.
    Comment,
    /// A name, bare or in double quotes.
    Ident,
    /// `$name`.
    BoundParam,
    /// A number with a decimal point.
    Number,
    /// A number without a decimal point.
    Integer,
    /// `1h30m`.
    DurationValue,
    /// `'…'`.
    String,
    /// An unterminated string.
    BadString,
    /// A string with a backslash before a character that cannot be escaped.
    BadEscape,
    /// `/…/`, where the grammar allows a regular expression.
    Regex,
    /// An unterminated regular expression.
    BadRegex,
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Mod,
    /// `&`
    BitwiseAnd,
    /// `|`
    BitwiseOr,
    /// `^`
    BitwiseXor,
    /// `=`
    Eq,
    /// `!=` or `<>`
    Neq,
    /// `=~`
    EqRegex,
    /// `!~`
    NeqRegex,
    /// `<`
    Lt,
    /// `<=`
    Lte,
    /// `>`
    Gt,
    /// `>=`
    Gte,
    /// `(`
    LeftParen,
    /// `)`
    RightParen,
    /// `,`
    Comma,
    /// `:`
    Colon,
    /// `::`
    DoubleColon,
    /// `;`
    Semicolon,
    /// `.`
    Dot,
    /// A reserved word.
    Keyword(Keyword),
}

impl InfluxQlToken {
    /// How an error names the token when it has no text of its own.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Illegal => "ILLEGAL",
            Self::Eof => "EOF",
            Self::Whitespace => "WS",
            Self::Comment | Self::BoundParam | Self::Integer | Self::BadRegex => "",
            Self::Ident => "IDENT",
            Self::Number => "NUMBER",
            Self::DurationValue => "DURATIONVAL",
            Self::String => "STRING",
            Self::BadString => "BADSTRING",
            Self::BadEscape => "BADESCAPE",
            Self::Regex => "REGEX",
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Mod => "%",
            Self::BitwiseAnd => "&",
            Self::BitwiseOr => "|",
            Self::BitwiseXor => "^",
            Self::Eq => "=",
            Self::Neq => "!=",
            Self::EqRegex => "=~",
            Self::NeqRegex => "!~",
            Self::Lt => "<",
            Self::Lte => "<=",
            Self::Gt => ">",
            Self::Gte => ">=",
            Self::LeftParen => "(",
            Self::RightParen => ")",
            Self::Comma => ",",
            Self::Colon => ":",
            Self::DoubleColon => "::",
            Self::Semicolon => ";",
            Self::Dot => ".",
            Self::Keyword(keyword) => keyword.text(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{KEYWORD_BYTES_MAX, KEYWORDS, Keyword};

    #[test]
    fn keywords_are_sorted_and_found_in_any_case() {
        assert!(KEYWORDS.is_sorted_by(|a, b| a.0 < b.0));
        for (text, keyword) in KEYWORDS {
            assert!(text.len() <= KEYWORD_BYTES_MAX);
            assert_eq!(Keyword::lookup(text), Some(*keyword));
            assert_eq!(Keyword::lookup(&text.to_lowercase()), Some(*keyword));
            assert_eq!(keyword.text(), *text);
        }
        for word in ["", "cpu", "selects", "sélect", "subscriptionsss"] {
            assert_eq!(Keyword::lookup(word), None, "{word}");
        }
    }
}
