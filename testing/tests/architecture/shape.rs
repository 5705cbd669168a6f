//! How large the files and functions of the database are: what `just shape` prints.

use crate::production_code::SourceFile;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Longer functions are listed.
const FUNCTION_LINES_MAX: usize = 70;

/// The sizes of a set of files.
pub(crate) struct CodeShape {
    /// Lines and path of each file, the smallest first.
    files: Vec<(usize, String)>,
    /// Lines, path and name of each function that is long, the longest first.
    long_functions: Vec<(usize, String)>,
    functions: usize,
    lines: usize,
    test_lines: usize,
}

impl CodeShape {
    /// Measures these files; `others` are compiled for tests only.
    pub(crate) fn measure(root: &Path, files: &[SourceFile], others: &[SourceFile]) -> Self {
        let name = |file: &SourceFile| {
            let within = file.path.strip_prefix(root).unwrap_or(&file.path);
            within.display().to_string()
        };
        let lines = |file: &SourceFile| {
            let text = fs::read_to_string(&file.path).expect("a source file is text");
            text.lines().count()
        };
        let mut shape = Self {
            files: files.iter().map(|file| (lines(file), name(file))).collect(),
            long_functions: Vec::new(),
            functions: 0,
            lines: 0,
            test_lines: others.iter().map(lines).sum(),
        };
        shape.files.sort();
        shape.lines = shape.files.iter().map(|file| file.0).sum();
        for file in files {
            let mut functions = Functions::default();
            functions.visit_file(&file.production);
            shape.functions += functions.0.len();
            let long = functions.0.into_iter();
            let long = long.filter(|(lines, _)| *lines > FUNCTION_LINES_MAX);
            let path = name(file);
            let named = long.map(|(lines, function)| (lines, format!("{function}, {path}")));
            shape.long_functions.extend(named);
        }
        shape.long_functions.sort_by(|a, b| b.cmp(a));
        shape
    }

    /// Lines of the file in the middle.
    pub(crate) fn median_file_lines(&self) -> usize {
        self.files
            .get(self.files.len() / 2)
            .map_or(0, |file| file.0)
    }

    /// The share of long functions, per mille.
    pub(crate) fn long_functions_per_mille(&self) -> usize {
        self.long_functions.len() * 1000 / self.functions.max(1)
    }

    /// The figures as text.
    pub(crate) fn report(&self) -> String {
        let mut text = String::new();
        let all = self.lines + self.test_lines;
        let _ = writeln!(
            text,
            "{} files, {} lines; files of tests alone: {} lines, {} % of all",
            self.files.len(),
            self.lines,
            self.test_lines,
            self.test_lines * 100 / all.max(1),
        );
        let _ = writeln!(text, "median file: {} lines", self.median_file_lines());
        let _ = writeln!(text, "largest files:");
        for (lines, path) in self.files.iter().rev().take(5) {
            let _ = writeln!(text, "  {lines:5}  {path}");
        }
        let _ = writeln!(
            text,
            "{} of {} functions ({} per mille) have over {FUNCTION_LINES_MAX} lines:",
            self.long_functions.len(),
            self.functions,
            self.long_functions_per_mille(),
        );
        for (lines, function) in &self.long_functions {
            let _ = writeln!(text, "  {lines:5}  {function}");
        }
        text
    }
}

/// Lines and name of each function, from its signature to its closing brace.
#[derive(Default)]
struct Functions(Vec<(usize, String)>);

impl Functions {
    fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let begin = signature.fn_token.span().start().line;
        let end = block.brace_token.span.close().end().line;
        self.0.push((end + 1 - begin, signature.ident.to_string()));
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.add(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}
