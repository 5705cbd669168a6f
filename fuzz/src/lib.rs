//! The functions under fuzzing: whatever the bytes, they must not panic or allocate without reason.
//!
//! The libFuzzer targets use them and, on the stable toolchain, `testing/tests/fuzz_smoke.rs`. Logs
//! are tried twice: unchanged, and with corrected checksums, because mutated bytes hardly ever pass
//! a checksum.

use marigram_access::{
    AccessRecords, ChannelBinding, PasswordVerifiers, ScramExchange, from_records,
};
use marigram_codec::{
    BodyHeader, Compressor, DecodeLimits, Encoding, OwnedValues, ValueType, frame, tsfile_forms,
};
use marigram_env::{DiskSnapshot, FileBlobs, SimFs};
use marigram_flux::parse_flux;
use marigram_influxql::ast::Statement;
use marigram_influxql::time_range::TimeContext;
use marigram_influxql::{UtcOnly, columns, parse_query, privileges, validate};
use marigram_iotdb::wire::message_head;
use marigram_iotdb::{
    ClientCall, PathPattern, Tablet, TreeSqlContext, parse_statement as parse_tree_sql,
    record_values,
};
use marigram_manifest::{CatalogState, ManifestState, WitnessFile};
use marigram_model::{TagKey, tag_key_entries};
use marigram_opentsdb::{
    Annotation, AnnotationChange, AnnotationDeletion, ExpressionHead, ExpressionJoin,
    ExpressionQuery, Formula, GroupMerge, JoinVariables, LastQuery, LookupQuery, SeriesPoint,
    SeriesReducer, SeriesSet, TelnetCommand, TsQuery, parse_put,
};
use marigram_protocol::flight::{ArrowLimits, ArrowMessages, FlightHandle, QueryTicket};
use marigram_protocol::lines::{LineLimits, Precision, encode_batch, parse};
use marigram_protocol::opentsdb::{annotation_batch, metric_batches};
use marigram_segment::Segment;
use marigram_series_index::SeriesLog;
use marigram_tdengine::ast::TaosStatement;
use marigram_tdengine::{
    BinaryBody, BinaryRequest, BoundColumn, InsertedRows, PreparedSql, Stmt2Bind, TaosPrecision,
    TaosType, TaosdToken, TimeSetting, filled_text, parse_statement, read_raw_block, stored_value,
};
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// The payload of a record of the write-ahead log.
pub fn wal_record(data: &[u8]) {
    if let Ok((sequence, entry)) = marigram_wal::decode_record(data) {
        let mut out = Vec::new();
        marigram_wal::encode_record(sequence, &entry, &mut out);
    }
}

/// Bytes of [`codec_page`]'s input before the page's body.
pub const PAGE_HEAD_BYTES: usize = 9;

/// A page's body, preceded by its type, encoding and compressor (one byte each), the number of
/// values (u16) and the bytes before compression (u32).
pub fn codec_page(data: &[u8]) {
    let Some((head, body)) = data.split_first_chunk::<PAGE_HEAD_BYTES>() else {
        return;
    };
    let [kind, encoding, compressor, c0, c1, b0, b1, b2, b3] = *head;
    let kind = ValueType::ALL[usize::from(kind) % ValueType::ALL.len()];
    let (Some(encoding), Some(compressor)) = (
        Encoding::from_number(encoding),
        Compressor::from_number(compressor),
    ) else {
        return;
    };
    let count = usize::from(u16::from_le_bytes([c0, c1]));
    let body_bytes = u32::from_le_bytes([b0, b1, b2, b3]);
    let header = BodyHeader {
        encoding,
        compressor,
        body_bytes,
    };
    let limits = DecodeLimits {
        values: 1 << 16,
        bytes: 1 << 20,
    };
    let values = marigram_codec::decode(kind, header, count, body, limits);
    // Regular times are read without decoding them: the result must be the same.
    if kind == ValueType::I64
        && let Ok(Some(found)) = marigram_codec::decode_regular(header, count, body, limits)
    {
        let each: Vec<i64> = found.each().take(count + 1).collect();
        assert_eq!(values, Ok(OwnedValues::I64(each)), "regular times");
    }
    // Decoding a part skips the rest: for an undamaged page, its values must be the same.
    let rows = count / 3..count - count / 4;
    let part = marigram_codec::decode_part(kind, header, count, body, limits, &rows);
    if let Some(all) = values.ok().as_ref().and_then(numbers)
        && let Some(part) = part.expect("a part of what can be decoded")
    {
        assert_eq!(numbers(&part).as_deref(), all.get(rows.clone()), "a part");
    }
    // Numbers that should ascend may not do so.
    let bounds = (i64::MIN / 3, i64::MAX / 3);
    let within = marigram_codec::decode_within(header, count, body, limits, &rows, bounds);
    if let Ok(Some((within, values))) = within {
        assert_eq!(within.len(), values.len(), "a part by its bounds");
    }
}

/// Numbers as bits, so that NaN equals itself.
fn numbers(values: &OwnedValues) -> Option<Vec<u64>> {
    Some(match values {
        OwnedValues::I32(values) => values.iter().map(|value| *value as u64).collect(),
        OwnedValues::I64(values) => values.iter().map(|value| *value as u64).collect(),
        OwnedValues::U64(values) => values.clone(),
        OwnedValues::F32(values) => values.iter().map(|value| value.to_bits().into()).collect(),
        OwnedValues::F64(values) => values.iter().map(|value| value.to_bits()).collect(),
        OwnedValues::Bool { .. } | OwnedValues::Bytes { .. } => return None,
    })
}

/// The values of a page of Apache `TsFile`, preceded by type and encoding (one byte each) and the
/// number of values (u16).
pub fn tsfile_values(data: &[u8]) {
    let Some(([kind, encoding, c0, c1], body)) = data.split_first_chunk::<4>() else {
        return;
    };
    let kind = ValueType::ALL[usize::from(*kind) % ValueType::ALL.len()];
    let Some(encoding) = Encoding::from_number(*encoding) else {
        return;
    };
    let count = usize::from(u16::from_le_bytes([*c0, *c1]));
    let limits = DecodeLimits {
        values: 1 << 16,
        bytes: 1 << 20,
    };
    let _ = tsfile_forms::decode(kind, encoding, count, body, limits);
}

/// A whole segment: opens it, reads every page, and verifies it.
pub fn segment(data: &[u8]) {
    let sim = SimFs::new(0);
    let files = DiskSnapshot::from([("fuzz.seg".into(), data.to_vec())]);
    sim.restore(Path::new("/"), &files)
        .expect("an empty disk takes a file");
    let blobs = FileBlobs::new(Arc::new(sim), Path::new("/"));
    Segment::verify(&blobs, "fuzz.seg", &mut |_| {});
    let Ok(segment) = Segment::open(&blobs, "fuzz.seg") else {
        return;
    };
    for (number, group) in segment.row_groups().iter().enumerate() {
        let _ = segment.directory(number);
        for column in &group.columns {
            let pages = segment.pages(number, column.id).ok().flatten();
            for page in 0..pages.map_or(0, |pages| pages.len()) {
                let _ = segment.page_info(number, column.id, page);
                let _ = segment.read_page(number, column.id, page);
            }
        }
    }
}

/// A manifest.
pub fn manifest(data: &[u8]) {
    let path = Path::new("MANIFEST");
    let _ = ManifestState::from_log(path, data);
    let _ = ManifestState::from_log(path, &with_checksums(data));
}

/// A witness.
pub fn witness(data: &[u8]) {
    let path = Path::new("WITNESS");
    let _ = WitnessFile::decode(path, data);
    let mut sealed = data.to_vec();
    for slot in sealed.chunks_exact_mut(36) {
        let checksum = marigram_codec::crc32c([&slot[..32]]);
        slot[32..].copy_from_slice(&checksum.to_le_bytes());
    }
    let _ = WitnessFile::decode(path, &sealed);
}

/// A catalog.
pub fn catalog(data: &[u8]) {
    let path = Path::new("CATALOG");
    let _ = CatalogState::from_log(path, data);
    let _ = CatalogState::from_log(path, &with_checksums(data));
}

/// A series log.
pub fn series_log(data: &[u8]) {
    let path = Path::new("SERIES");
    let _ = SeriesLog::decode(path, data);
    let _ = SeriesLog::decode(path, &with_checksums(data));
}

/// A body of line protocol. The rows that parse are encoded and parsed once more.
pub fn line_protocol(data: &[u8]) {
    let parsed = parse(data, Precision::Milliseconds, 7, LineLimits::default());
    for batch in &parsed.batches {
        batch.check().expect("a parsed batch is consistent");
        let mut text = String::new();
        if encode_batch(batch, &mut text).is_ok() {
            let again = parse(
                text.as_bytes(),
                Precision::Nanoseconds,
                0,
                LineLimits::default(),
            );
            assert_eq!(again.errors, [], "what was written can be read: {text:?}");
            assert_eq!(again.rows(), batch.len(), "every row is there: {text:?}");
        }
    }
}

/// A script of Flux. An error is at a place of the text.
pub fn flux(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err(error) = parse_flux(&text) {
        let lines = text.split('\n').count();
        let line = usize::try_from(error.at.line).unwrap_or(usize::MAX);
        assert!((1..=lines).contains(&line), "{error}");
        assert!(error.at.column >= 1, "{error}");
    }
}

/// A ticket of Arrow Flight: the handle of a statement, whose parameters are read, or the JSON of
/// InfluxDB's clients.
pub fn flight_ticket(data: &[u8]) {
    if QueryTicket::is_json(data)
        && let Ok(ticket) = QueryTicket::read(data)
    {
        assert!(!ticket.database.is_empty());
    }
    let Some(handle) = FlightHandle::read(data) else {
        return;
    };
    assert_eq!(FlightHandle::read(&handle.write()), Some(handle.clone()));
    let mut reader = ArrowMessages::new(ArrowLimits {
        dictionary_bytes: 1 << 20,
    });
    for message in handle.parameters {
        if reader.read(&message.header, message.body).is_err() {
            return;
        }
    }
}

/// Lines of OpenTSDB's telnet protocol, and the same bytes as the body of a put. What can be stored
/// becomes batches.
pub fn opentsdb_telnet(data: &[u8]) {
    let lines = data.split(|byte| *byte == b'\n').map(TelnetCommand::parse);
    let mut points: Vec<_> = lines
        .filter_map(|command| match command {
            TelnetCommand::Put(point) => point.ok(),
            _ => None,
        })
        .collect();
    if let Ok(put) = parse_put(data, 10, &mut |_| true) {
        points.extend(put.points);
    }
    let rows: usize = metric_batches(&points)
        .iter()
        .map(|metric| {
            assert_eq!(metric.batch.check(), Ok(()));
            metric.batch.len()
        })
        .sum();
    assert_eq!(rows, points.len());
}

/// A request of OpenTSDB's `/api/query/exp`, an expression, or annotations: the bytes are the body. An
/// expression is computed, and joins a few series.
pub fn opentsdb_expressions(data: &[u8]) {
    const NOW_MS: i64 = 1_400_000_000_000;
    let text = String::from_utf8_lossy(data);
    if let Ok(formula) = Formula::parse(&text) {
        let values = vec![f64::NAN; formula.variables().len()];
        let mut stack = Vec::new();
        formula.compute(&values, &mut stack);
        assert!(stack.is_empty(), "a formula leaves nothing on the stack");
    }
    let _ = AnnotationChange::list_from_json(data);
    let _ = AnnotationDeletion::from_json(data, NOW_MS);
    if let Ok(change) = AnnotationChange::from_json(data) {
        let annotation = change.applied(None, false);
        let custom = Annotation::custom_of_text(&annotation.custom_text());
        assert_eq!(custom, annotation.custom);
        if change.check_start().is_ok() {
            assert_eq!(annotation_batch(&[annotation]).check(), Ok(()));
        }
    }
    let query = ExpressionQuery::from_json(data);
    let Ok(checked) = query.and_then(|query| query.check(NOW_MS)) else {
        return;
    };
    let mut variables = JoinVariables::default();
    for (number, metric) in checked.metrics.iter().enumerate() {
        let place = i64::try_from(number).unwrap_or(0);
        let point = |time_ms: i64, value: f64| SeriesPoint { time_ms, value };
        let points = vec![point(place, 1.0), point(10, f64::NAN)];
        let set = SeriesSet {
            series: vec![(ExpressionHead::default(), points)],
            ..SeriesSet::default()
        };
        variables.add_metric(&metric.id, Arc::new(set), metric.fill);
    }
    for step in &checked.steps {
        let Ok((mut join, mut table)) = ExpressionJoin::new(step, &variables) else {
            return;
        };
        while join.next_rows(&mut table) {}
        assert!(table.times.is_sorted());
        assert_eq!(table.values.len(), table.times.len() * table.heads.len());
        variables.add_expression(&step.id, Arc::new(table), step.fill);
    }
}

/// A query of OpenTSDB: the bytes are the parameter `m`, or a body. What can be read is computed over
/// a few points.
pub fn opentsdb_query(data: &[u8]) {
    const NOW_MS: i64 = 1_400_000_000_000;
    let text = String::from_utf8_lossy(data);
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let (start, end) = (pair("start", "1h-ago"), pair("end", "now"));
    let of_url = TsQuery::from_parameters(&[start, end, pair("m", &text)]);
    let _ = LastQuery::from_json(data, NOW_MS);
    let _ = LookupQuery::from_json(data);
    for query in [of_url, TsQuery::from_json(data)].into_iter().flatten() {
        let Ok(resolved) = query.resolved(NOW_MS) else {
            continue;
        };
        for part in resolved.check(0).unwrap_or_default() {
            let (from, to) = part.read_range_ms();
            assert!(
                from <= part.start_ms && part.start_ms < part.end_ms,
                "{part:?}"
            );
            let mut reducer = SeriesReducer::new(&part);
            let mut points = Vec::new();
            for step in 0..20 {
                let time_ms = from + (to - from) / 20 * step;
                reducer.push(time_ms, step as f64, &mut points);
            }
            reducer.finish(&mut points);
            assert!(
                points.is_sorted_by(|a, b| a.time_ms < b.time_ms),
                "{part:?}"
            );
            let mut merge = GroupMerge::new(&part, vec![points.clone(), points]);
            let mut out = Vec::new();
            while merge.next_points(100, &mut out) {}
        }
    }
}

/// A frame of IoTDB's protocol. The rows of what can be read are read, too.
pub fn iotdb_frame(data: &[u8]) {
    let Ok((head, mut reader)) = message_head(data, 1 << 20) else {
        return;
    };
    let read_tablet = |times, values, types: &[i32], rows| {
        let Ok(tablet) = Tablet::new(times, values, types, rows) else {
            return;
        };
        assert_eq!(tablet.times().count(), tablet.len());
        for column in tablet.columns() {
            assert_eq!(column.values().count(), tablet.len());
        }
    };
    match ClientCall::read(head.method, &mut reader) {
        Ok(Some(ClientCall::InsertTablet(tablet, _))) => {
            read_tablet(tablet.times, tablet.values, &tablet.types, tablet.rows);
        }
        Ok(Some(ClientCall::InsertRecord(record, _))) => {
            let values = record_values(record.values, record.measurements.len());
            let count = values.map(|values| values.len());
            assert!(count.is_err() || count == Ok(record.measurements.len()));
        }
        _ => {}
    }
}

/// A statement of IoTDB's tree dialect, and the same text as a path.
pub fn iotdb_statement(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let context = TreeSqlContext::for_utc(1_400_000_000_000);
    let _ = parse_tree_sql(&text, &context);
    if let Ok(pattern) = PathPattern::parse(&text) {
        let again = PathPattern::parse(&pattern.to_string());
        assert_eq!(again.as_ref(), Ok(&pattern));
        assert!(!pattern.regex().is_empty());
        if let Some(path) = pattern.as_path() {
            assert!(pattern.matches(path.nodes()) && pattern.touches(path.nodes()));
        }
    }
}

/// A statement of TDengine, and the same bytes as a token. The rows of an INSERT are read again, and their
/// values become those of columns.
pub fn tdengine(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Some(token) = TaosdToken::from_text(&text) {
        assert!(token.to_text().is_some());
    }
    let Ok(TaosStatement::Insert(insert)) = parse_statement(&text) else {
        return;
    };
    let setting = TimeSetting {
        now_ns: 1_700_000_000_000_000_000,
        precision: TaosPrecision::Micro,
        ..TimeSetting::default()
    };
    let kinds = [
        TaosType::Timestamp,
        TaosType::USmallInt,
        TaosType::Float,
        TaosType::NChar(8),
        TaosType::VarBinary(8),
        TaosType::Bool,
    ];
    for clause in &insert.clauses {
        let mut rows = InsertedRows::new(&text, clause).expect("its rows were read before");
        let (mut row, mut count) = (Vec::new(), 0);
        while rows.next_row(&mut row).expect("each row was read before") {
            count += 1;
            for value in &row {
                for kind in kinds {
                    let _ = stored_value(value, kind, (&setting, "c"));
                }
            }
        }
        assert_eq!(count, clause.row_count, "{text}");
    }
}

/// A binary message of TDengine's WebSocket: a statement, which is also prepared, a block of rows, or bound
/// tables.
pub fn tdengine_message(data: &[u8]) {
    let Some(request) = BinaryRequest::parse(data) else {
        return;
    };
    assert!(!request.action_name().is_empty());
    match request.body {
        BinaryBody::Query(sql) | BinaryBody::ValidateSql(sql) => {
            let Ok(prepared) = PreparedSql::parse(sql) else {
                return;
            };
            if let PreparedSql::Other(pieces) = &prepared {
                assert_eq!(pieces.len(), prepared.places() + 1);
                if let [_] = &pieces[..] {
                    assert_eq!(filled_text(pieces, &[]).as_deref(), Ok(sql));
                }
            }
        }
        BinaryBody::SetTags(block) | BinaryBody::Bind(block) => {
            if let Ok(columns) = read_raw_block(block) {
                read_columns(columns);
            }
        }
        BinaryBody::Stmt2Bind { values, .. } => {
            let Ok(mut bind) = Stmt2Bind::parse(values) else {
                return;
            };
            while let Ok(Some(table)) = bind.next_table() {
                if table.columns.is_empty() {
                    return;
                }
                read_columns(table.tags);
                read_columns(table.columns);
            }
        }
        BinaryBody::FetchRawBlock | BinaryBody::Unknown | BinaryBody::Malformed(_) => {}
    }
}

/// Reads the values of columns, as far as they are some, and writes them as literals.
fn read_columns(columns: Vec<BoundColumn<'_>>) {
    let mut literal = String::new();
    for mut column in columns {
        for _ in 0..column.rows().min(1000) {
            literal.clear();
            match column.next_value() {
                Ok(value) => {
                    let _ = value.push_literal(&mut literal);
                }
                Err(_) => break,
            }
        }
    }
}

/// A query in InfluxQL. What can be read is printed and checked.
pub fn influxql(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let query = match parse_query(&text) {
        Ok(query) => query,
        Err(error) => {
            let at = error.position().map_or(0, |position| position.byte);
            assert!(at <= text.len(), "{error} is at byte {at}");
            return;
        }
    };
    let context = TimeContext {
        now_ns: 0,
        time_zone: None,
        zones: &UtcOnly,
    };
    for (statement, span) in query.statements.iter().zip(&query.spans) {
        assert!(text.get(span.start..span.end).is_some(), "{span:?}");
        assert!(!statement.to_string().is_empty());
        privileges::required_privileges(statement);
        if let Statement::Select(select) = statement
            && let Ok(analysis) = validate::analyze(select, &context)
        {
            columns::column_names(&analysis.fields, None, false);
        }
    }
}

/// A tag key.
pub fn tag_key(data: &[u8]) {
    let entries = tag_key_entries(data).count();
    if let Ok(key) = TagKey::from_bytes(data) {
        let mut again = TagKey::default();
        for (ordinal, value) in tag_key_entries(key.as_bytes()).map_while(Result::ok) {
            again.push(ordinal, value);
        }
        assert_eq!(again, key, "a key of {entries} tags has one form");
    }
}

/// The bytes as consecutive frames with correct checksums; the last frame ends with the input.
fn with_checksums(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    let mut rest = data;
    while let Some((len, after)) = rest.split_first_chunk::<4>() {
        let after = after.get(4..).unwrap_or_default();
        let (payload, next) = after.split_at(after.len().min(u32::from_le_bytes(*len) as usize));
        frame::write(payload, &mut out);
        rest = next;
    }
    out
}

/// A TsFile: its rows up to the first damage.
pub fn tsfile(data: &[u8]) {
    let Ok(mut reader) = marigram_tsfile::TsFileReader::open(std::io::Cursor::new(data)) else {
        return;
    };
    while let Ok(Some(block)) = reader.next_block() {
        for column in &block.columns {
            assert_eq!(column.values.len(), block.times.len(), "one value a row");
        }
    }
    assert!(
        matches!(reader.next_block(), Ok(None)),
        "nothing follows an error"
    );
}

/// Both messages of a client that logs in, divided by the first zero byte; also a record of a user.
pub fn scram(data: &[u8]) {
    static VERIFIERS: LazyLock<PasswordVerifiers> =
        LazyLock::new(|| PasswordVerifiers::decoy("user", &[7; 32]));
    let at = data.iter().position(|byte| *byte == 0);
    let (first, second) = data.split_at(at.unwrap_or(data.len()));
    for (is_plus, channel) in [
        (false, ChannelBinding::None),
        (true, ChannelBinding::ServerEndPoint(b"hash")),
    ] {
        if let Ok(exchange) = ScramExchange::begin(&VERIFIERS, first, is_plus, channel) {
            // The server's part of the nonce is random: the client's message is made to fit.
            let challenge = exchange.challenge();
            let nonce = challenge.split(',').next().unwrap_or_default();
            let proof = String::from_utf8_lossy(second.get(1..).unwrap_or_default());
            let fitting = format!("c=biws,{nonce},p={proof}");
            let _ = exchange.finish(fitting.as_bytes());
        }
    }
    let records = AccessRecords::from([("user:u".to_owned(), Arc::from(data))]);
    let _ = from_records(&records);
}
