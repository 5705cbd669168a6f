//! Which modules a file refers to: the paths in its code that begin with `crate`, `super` or
//! `self`, and what it re-exports. Paths are read from tokens, so that those within macros count.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use syn::File;

/// A path from the crate's root, as its segments.
pub(crate) type ModulePath = Vec<String>;

/// A path that a `use` declares, relative to its module, and the name that it gets there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UsedName {
    pub path: ModulePath,
    pub name: String,
}

/// The paths from the crate's root to which the code of `module` refers.
pub(crate) fn references(file: &File, module: &[String]) -> Vec<ModulePath> {
    let mut found = Vec::new();
    walk(file.to_token_stream(), module, &mut found);
    found
}

fn walk(tokens: TokenStream, module: &[String], found: &mut Vec<ModulePath>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Group(group) => {
                let inner = match at.checked_sub(2).map(|at| &tokens[at..at + 2]) {
                    Some([keyword, TokenTree::Ident(name)]) if is_word(keyword, "mod") => {
                        [module, &[name.to_string()]].concat()
                    }
                    _ => module.to_vec(),
                };
                walk(group.stream(), &inner, found);
            }
            TokenTree::Ident(word)
                if !follows_path(&tokens, at) && is_path_sign(&tokens, at + 1) =>
            {
                let base = match word.to_string().as_str() {
                    "crate" => Some(Vec::new()),
                    "self" => Some(module.to_vec()),
                    "super" => Some(parent(module)),
                    _ => None,
                };
                if let Some(mut base) = base {
                    let mut names = Vec::new();
                    read_path(&tokens[at + 3..], &mut base, &mut names);
                    found.extend(names.into_iter().map(|used| used.path));
                }
            }
            _ => {}
        }
        at += 1;
    }
}

fn parent(module: &[String]) -> ModulePath {
    module[..module.len().saturating_sub(1)].to_vec()
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

/// Whether `::` stands at a position.
fn is_path_sign(tokens: &[TokenTree], at: usize) -> bool {
    let is_colon =
        |token: &TokenTree| matches!(token, TokenTree::Punct(sign) if sign.as_char() == ':');
    matches!(tokens.get(at..at + 2), Some(pair) if pair.iter().all(is_colon))
}

/// Whether `::` stands before a position.
fn follows_path(tokens: &[TokenTree], at: usize) -> bool {
    at >= 2 && is_path_sign(tokens, at - 2)
}

/// Reads the rest of one path, or of a group of them, at the start of `tokens`.
fn read_path(tokens: &[TokenTree], base: &mut ModulePath, found: &mut Vec<UsedName>) {
    let depth = base.len();
    let mut at = 0;
    loop {
        match tokens.get(at) {
            Some(TokenTree::Ident(word)) => match word.to_string().as_str() {
                "super" => _ = base.pop(),
                "self" => {}
                name => base.push(name.to_owned()),
            },
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(sign) if sign.as_char() == ',');
                for part in inner.split(is_comma).filter(|part| !part.is_empty()) {
                    read_path(part, &mut base.clone(), found);
                }
                break;
            }
            // `*`, or the type arguments of a function.
            _ => {
                found.push(used(base, None));
                break;
            }
        }
        if !is_path_sign(tokens, at + 1) {
            let alias = tokens.get(at + 1..at + 3).and_then(|pair| match pair {
                [keyword, TokenTree::Ident(alias)] if is_word(keyword, "as") => Some(alias),
                _ => None,
            });
            found.push(used(base, alias.map(ToString::to_string)));
            break;
        }
        at += 3;
    }
    base.truncate(depth);
}

fn used(path: &[String], alias: Option<String>) -> UsedName {
    UsedName {
        path: path.to_vec(),
        name: alias.or_else(|| path.last().cloned()).unwrap_or_default(),
    }
}

/// The names that the `use` declarations of a file bring into its module, by paths relative to it.
pub(crate) fn used_names(file: &File) -> Vec<UsedName> {
    let mut found = Vec::new();
    for item in &file.items {
        if let syn::Item::Use(item) = item {
            let tokens: Vec<TokenTree> = item.tree.to_token_stream().into_iter().collect();
            if !tokens.first().is_some_and(|first| is_word(first, "super")) {
                read_path(&tokens, &mut Vec::new(), &mut found);
            }
        }
    }
    found
}
