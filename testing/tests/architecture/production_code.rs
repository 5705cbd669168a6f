//! The syntax of a source file without what only tests compile.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit_mut::{self, VisitMut};
use syn::{Attribute, File, ImplItem, Item, Meta, Stmt, TraitItem};

/// A source file.
pub(crate) struct SourceFile {
    pub path: PathBuf,
    /// Everything in the file.
    pub syntax: File,
    /// The same without `#[cfg(test)]`.
    pub production: File,
}

/// Reads the Rust files of a folder; those that only tests compile are apart.
pub(crate) fn source_files(src: &Path) -> (Vec<SourceFile>, Vec<SourceFile>) {
    let files: Vec<SourceFile> = rust_files(src).into_iter().map(SourceFile::read).collect();
    let of_tests: BTreeSet<PathBuf> = files.iter().flat_map(SourceFile::test_modules).collect();
    let is_production = |file: &SourceFile| {
        let module = module_path(&file.path);
        !of_tests.iter().any(|test| module.starts_with(test))
    };
    files.into_iter().partition(is_production)
}

/// Every Rust file under `folder`, sorted.
pub(crate) fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// A file's path without its extension, and without `mod`: where the files of its children are.
fn module_path(file: &Path) -> PathBuf {
    let bare = file.with_extension("");
    match bare.file_name().and_then(|name| name.to_str()) {
        Some("mod" | "lib" | "main") => bare.parent().unwrap_or(&bare).to_owned(),
        _ => bare,
    }
}

impl SourceFile {
    pub(crate) fn read(path: PathBuf) -> Self {
        let text = fs::read_to_string(&path).expect("a source file is text");
        let syntax = syn::parse_file(&text)
            .unwrap_or_else(|error| panic!("{} cannot be parsed: {error}", path.display()));
        let mut production = syntax.clone();
        remove_tests(&mut production);
        Self {
            path,
            syntax,
            production,
        }
    }

    /// The module paths of the files that only tests compile, by the declarations in this file.
    fn test_modules(&self) -> Vec<PathBuf> {
        let mut modules = Vec::new();
        for item in &self.syntax.items {
            let Item::Mod(module) = item else { continue };
            if module.content.is_none() && is_for_tests(&module.attrs) {
                let named = path_attribute(&module.attrs);
                modules.push(match (named, self.path.parent()) {
                    (Some(named), Some(folder)) => module_path(&folder.join(named)),
                    _ => module_path(&self.path).join(module.ident.to_string()),
                });
            }
        }
        modules
    }
}

/// The value of `#[path = "…"]`.
fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| {
        let Meta::NameValue(named) = &attribute.meta else {
            return None;
        };
        if !named.path.is_ident("path") {
            return None;
        }
        match &named.value {
            syn::Expr::Lit(syn::ExprLit {
                lit: syn::Lit::Str(text),
                ..
            }) => Some(text.value()),
            _ => None,
        }
    })
}

/// Whether something is compiled for tests only: `#[cfg(test)]` or `#[cfg(all(test, …))]`.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let Meta::List(list) = &attribute.meta else {
            return false;
        };
        let condition = list.tokens.to_string().replace(' ', "");
        list.path.is_ident("cfg") && (condition == "test" || condition.starts_with("all(test,"))
    })
}

fn attributes_of_item(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_test_item(item: &Item) -> bool {
    is_for_tests(attributes_of_item(item))
}

/// Removes everything that only tests compile from a file.
pub(crate) fn remove_tests(file: &mut File) {
    WithoutTests.visit_file_mut(file);
}

struct WithoutTests;

impl VisitMut for WithoutTests {
    fn visit_file_mut(&mut self, file: &mut File) {
        file.items.retain(|item| !is_test_item(item));
        visit_mut::visit_file_mut(self, file);
    }

    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        if let Some((_, items)) = &mut module.content {
            items.retain(|item| !is_test_item(item));
        }
        visit_mut::visit_item_mod_mut(self, module);
    }

    fn visit_item_impl_mut(&mut self, block: &mut syn::ItemImpl) {
        block.items.retain(|item| {
            !is_for_tests(match item {
                ImplItem::Const(item) => &item.attrs,
                ImplItem::Fn(item) => &item.attrs,
                ImplItem::Type(item) => &item.attrs,
                ImplItem::Macro(item) => &item.attrs,
                _ => &[],
            })
        });
        visit_mut::visit_item_impl_mut(self, block);
    }

    fn visit_item_trait_mut(&mut self, block: &mut syn::ItemTrait) {
        block.items.retain(|item| {
            !is_for_tests(match item {
                TraitItem::Const(item) => &item.attrs,
                TraitItem::Fn(item) => &item.attrs,
                TraitItem::Type(item) => &item.attrs,
                TraitItem::Macro(item) => &item.attrs,
                _ => &[],
            })
        });
        visit_mut::visit_item_trait_mut(self, block);
    }

    fn visit_item_enum_mut(&mut self, item: &mut syn::ItemEnum) {
        item.variants
            .retain(|variant| !is_for_tests(&variant.attrs));
        visit_mut::visit_item_enum_mut(self, item);
    }

    fn visit_fields_named_mut(&mut self, fields: &mut syn::FieldsNamed) {
        fields.named.retain(|field| !is_for_tests(&field.attrs));
        visit_mut::visit_fields_named_mut(self, fields);
    }

    fn visit_expr_struct_mut(&mut self, value: &mut syn::ExprStruct) {
        value.fields.retain(|field| !is_for_tests(&field.attrs));
        visit_mut::visit_expr_struct_mut(self, value);
    }

    fn visit_expr_match_mut(&mut self, expr: &mut syn::ExprMatch) {
        expr.arms.retain(|arm| !is_for_tests(&arm.attrs));
        visit_mut::visit_expr_match_mut(self, expr);
    }

    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        block.stmts.retain(|statement| {
            !is_for_tests(match statement {
                Stmt::Local(local) => &local.attrs,
                Stmt::Item(item) => attributes_of_item(item),
                Stmt::Macro(call) => &call.attrs,
                Stmt::Expr(..) => &[],
            })
        });
        visit_mut::visit_block_mut(self, block);
    }
}
