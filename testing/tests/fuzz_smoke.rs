//! Runs the fuzz targets on the stable toolchain: mutations of valid inputs from a fixed seed, a
//! limited number of times (`MARIGRAM_FUZZ_ITERATIONS` per target). No input may cause a panic, or
//! an allocation that it does not justify.

#[path = "../../fuzz/src/lib.rs"]
#[expect(unreachable_pub, reason = "the targets of cargo-fuzz import them")]
mod targets;

use arrow_ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use marigram_codec::{Compressor, Encoding, EncodingChoice, PageValues, frame, tsfile_forms};
use marigram_fixtures::golden;
use marigram_iotdb::InsertTabletRequest;
use marigram_iotdb::wire::{MessageHead, MessageKind, WireProtocol, write_call};
use marigram_model::{TagKey, TagValueRef};
use marigram_protocol::flight::{BoundMessage, FlightHandle, StatementLanguage};
use marigram_tdengine::{RawColumn, TaosType, raw_block};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Largest allocation that any input may cause. Inputs have a few KiB; the limits allow a page to
/// claim a MiB.
const PIECE_BYTES_MAX: usize = 16 << 20;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, which records the largest allocation.
struct LargestAllocation;

#[expect(unsafe_code, reason = "an allocator needs unsafe code")]
// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for LargestAllocation {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's guarantee is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's guarantee is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        LARGEST.fetch_max(new_size, Ordering::Relaxed);
        // SAFETY: the caller's guarantee is passed on.
        unsafe { System.realloc(ptr, layout, new_size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's guarantee is passed on.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: LargestAllocation = LargestAllocation;

fn iterations() -> u64 {
    let text = std::env::var("MARIGRAM_FUZZ_ITERATIONS");
    text.ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(5_000)
}

/// Runs a target on the seeds and on their mutations.
fn run(name: &str, seeds: &[Vec<u8>], words: &[&[u8]], target: fn(&[u8])) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(0x006d_6172);
    let spots: Vec<_> = seeds.iter().map(|seed| frames(seed)).collect();
    for seed in seeds {
        target(seed);
    }
    for iteration in 0..iterations() {
        let at = rng.random_range(0..seeds.len());
        let mut input = seeds[at].clone();
        let in_place = rng.random_range(0..2) == 0;
        for _ in 0..rng.random_range(1..5) {
            if in_place {
                overwrite(&mut input, &mut rng);
            } else {
                reshape(&mut input, words, &seeds[at], &mut rng);
            }
        }
        // Every other time, fix the checksums of overwritten frames.
        if in_place && iteration % 2 == 0 {
            spots[at].iter().for_each(|spot| reseal(&mut input, *spot));
        }
        LARGEST.store(0, Ordering::Relaxed);
        let result = catch_unwind(AssertUnwindSafe(|| target(&input)));
        let largest = LARGEST.load(Ordering::Relaxed);
        assert!(
            result.is_ok(),
            "{name}, iteration {iteration}: panic on {input:02x?}"
        );
        assert!(
            largest <= PIECE_BYTES_MAX,
            "{name}, iteration {iteration}: asked for {largest} bytes on {input:02x?}"
        );
    }
}

/// The frames of a valid input.
fn frames(seed: &[u8]) -> Vec<(usize, usize)> {
    (0..seed.len())
        .filter_map(|at| match frame::read(&seed[at..]) {
            frame::FrameRead::Frame { payload, len } if !payload.is_empty() => Some((at, len)),
            _ => None,
        })
        .collect()
}

/// Corrects the checksum of a frame.
fn reseal(input: &mut [u8], (at, len): (usize, usize)) {
    let mut sealed = Vec::new();
    frame::write(&input[at + frame::HEADER_BYTES..at + len], &mut sealed);
    input[at..at + len].copy_from_slice(&sealed);
}

/// Changes bytes and keeps the length.
fn overwrite(input: &mut [u8], rng: &mut Xoshiro256PlusPlus) {
    if input.is_empty() {
        return;
    }
    let at = rng.random_range(0..input.len());
    match rng.random_range(0..4) {
        0 => input[at] ^= 1 << rng.random_range(0..8),
        1 => input[at] = rng.random_range(0..=255_u8),
        2 => input[at] = [0, 1, 0x7f, 0x80, 0xff][rng.random_range(0..5_usize)],
        _ => {
            let number = [0, 1, 0xff, u32::MAX, i32::MAX as u32][rng.random_range(0..5_usize)];
            let end = input.len().min(at + 4);
            input[at..end].copy_from_slice(&number.to_le_bytes()[..end - at]);
        }
    }
}

/// Cuts, duplicates or inserts bytes.
fn reshape(input: &mut Vec<u8>, words: &[&[u8]], seed: &[u8], rng: &mut Xoshiro256PlusPlus) {
    let at = rng.random_range(0..=input.len());
    match rng.random_range(0..5) {
        0 => input.truncate(at),
        1 => {
            let end = rng.random_range(at..=input.len());
            input.drain(at..end);
        }
        2 => {
            let from = rng.random_range(0..=seed.len());
            let to = rng.random_range(from..=seed.len());
            input.splice(at..at, seed[from..to].iter().copied());
        }
        3 if !words.is_empty() => {
            let word = words[rng.random_range(0..words.len())];
            input.splice(at..at, word.iter().copied());
        }
        _ => overwrite(input, rng),
    }
}

#[test]
fn wal_records() {
    let file = golden("wal/v2-every-kind.bin");
    let seeds: Vec<_> = frames(&file)
        .into_iter()
        .map(|(at, len)| file[at + frame::HEADER_BYTES..at + len].to_vec())
        .collect();
    assert!(
        seeds.len() >= 3,
        "the golden file has a record of each kind"
    );
    run("wal record", &seeds, &[], targets::wal_record);
}

/// An input for the page target.
fn page(values: PageValues<'_>, choice: EncodingChoice) -> Vec<u8> {
    let mut body = Vec::new();
    let header = marigram_codec::encode(values, choice, &mut body);
    let mut input = vec![
        values.value_type() as u8,
        header.encoding as u8,
        header.compressor as u8,
    ];
    input.extend_from_slice(&(values.len() as u16).to_le_bytes());
    input.extend_from_slice(&header.body_bytes.to_le_bytes());
    input.extend_from_slice(&body);
    input
}

/// Passes pages with values of every type to `use_them`.
fn with_pages(mut use_them: impl FnMut(PageValues<'_>)) {
    let truths: Vec<_> = (0..300).map(|n| n % 7 < 3).collect();
    let small: Vec<_> = (0..1500).map(|n| 20 + n % 11).collect();
    let times: Vec<_> = (0..1500)
        .map(|n| 1_700_000_000_000_000_000 + n * 1_000_000_007)
        .collect();
    let counts: Vec<_> = (0..1500_u64).map(|n| n * n).collect();
    let temperatures: Vec<_> = (0..1500).map(|n| 20.0 + (n % 77) as f32 / 10.0).collect();
    let positions: Vec<_> = (0..1500).map(|n| 52.0 + f64::from(n) / 1e5).collect();
    let noise: Vec<_> = (0..500).map(|n| f64::from(n).sin()).collect();
    let runs = [vec![1.5; 700], vec![2.5; 300]].concat();
    let words: Vec<_> = (0..400).map(|n| ["on", "off", "idle"][n % 3]).collect();
    let text = words.concat();
    let mut offsets = vec![0];
    for word in &words {
        offsets.push(offsets[offsets.len() - 1] + word.len() as i32);
    }
    use_them(PageValues::Bool(&truths));
    use_them(PageValues::I32(&small));
    use_them(PageValues::I64(&times));
    use_them(PageValues::U64(&counts));
    use_them(PageValues::F32(&temperatures));
    use_them(PageValues::F64(&positions));
    use_them(PageValues::F64(&noise));
    use_them(PageValues::F64(&runs));
    use_them(PageValues::Bytes {
        offsets: &offsets,
        data: text.as_bytes(),
    });
}

#[test]
fn codec_pages() {
    let mut seeds = Vec::new();
    with_pages(|values| {
        seeds.push(page(values, EncodingChoice::default()));
        for encoding in Encoding::ALL {
            let choice = EncodingChoice {
                encoding: Some(encoding),
                compressor: Some(Compressor::Uncompressed),
                ..EncodingChoice::default()
            };
            if encoding.suits(values.value_type()) {
                seeds.push(page(values, choice));
            }
        }
        for compressor in Compressor::ALL {
            let choice = EncodingChoice {
                encoding: Some(Encoding::Plain),
                compressor: Some(compressor),
                ..EncodingChoice::default()
            };
            seeds.push(page(values, choice));
        }
    });
    run("codec page", &seeds, &[], targets::codec_page);
}

#[test]
fn values_of_tsfile() {
    let mut seeds = Vec::new();
    with_pages(|values| {
        for encoding in Encoding::ALL {
            let kind = values.value_type() as u8;
            let mut input = vec![kind, encoding as u8];
            input.extend_from_slice(&(values.len() as u16).to_le_bytes());
            if tsfile_forms::encode(values, encoding, &mut input).is_ok() {
                seeds.push(input);
            }
        }
    });
    assert!(seeds.len() >= 20, "every encoding must have a page");
    run("values of TsFile", &seeds, &[], targets::tsfile_values);
}

#[test]
fn segments() {
    run(
        "segment",
        &[golden("segment/v1.bin")],
        &[],
        targets::segment,
    );
}

#[test]
fn manifests() {
    run(
        "manifest",
        &[
            golden("manifest/v1-log.bin"),
            golden("manifest/v2-log.bin"),
            golden("manifest/v3-log.bin"),
        ],
        &[],
        targets::manifest,
    );
}

#[test]
fn witnesses() {
    run(
        "witness",
        &[golden("witness/v1.bin")],
        &[],
        targets::witness,
    );
}

#[test]
fn catalogs() {
    run(
        "catalog",
        &[
            golden("catalog/v1-log.bin"),
            golden("catalog/v4-log.bin"),
            golden("catalog/v8-log.bin"),
        ],
        &[],
        targets::catalog,
    );
}

#[test]
fn scram() {
    let login = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO\0dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
    let bound = b"p=tls-server-end-point,,n=,r=abc\0AAAA";
    let user = br#"{"can_log_in":true,"is_administrator":true,"password":null,"grants":{"d":3},"roles":[]}"#;
    let seeds = [login.to_vec(), bound.to_vec(), user.to_vec()];
    run("scram", &seeds, &[], targets::scram);
}

#[test]
fn series_logs() {
    run(
        "series log",
        &[golden("series/v1-log.bin")],
        &[],
        targets::series_log,
    );
}

#[test]
fn line_protocol() {
    let seeds = [
        "pump,site=north,unit=7 rpm=900i,temp=4.5,ok=t 1700000000000\n# note\n\nvalve open=F\r\n",
        "my\\,\\ table,tag\\ \\==v\\,\\= field\\==1e3,s=\"a \\\"b\\\" \\\\\nc\",u=7u -5\nm v=\"x\",w=-.5",
    ];
    let words: [&[u8]; 16] = [
        b",",
        b"=",
        b" ",
        b"\n",
        b"\r\n",
        b"\\",
        b"\"",
        b"i",
        b"u",
        b"-",
        b".",
        b"e9",
        b"time",
        b"\xff",
        "µ".as_bytes(),
        b"99999999999999999999",
    ];
    run(
        "line protocol",
        &seeds.map(|seed| seed.as_bytes().to_vec()),
        &words,
        targets::line_protocol,
    );
}

#[test]
fn opentsdb() {
    let lines = [
        "put sys.cpu 1356998400 42.5 host=web01 cpu=0\nput m 1356998400.250 -1e3 a=b\nversion\n",
        "auth basic ann correct horse\nput m 1 2\n\nput m 99999999999999 1 a=b\r\nstats",
        r#"[{"metric":"m","timestamp":1356998400,"value":"6.5","tags":{"host":"a"}},{"value":1}]"#,
    ];
    let queries = [
        "sum:1m-avg-nan:rate{counter,100,5}:explicit_tags:m{host=*,dc=a|b}{os=regexp(a:b{2},c)}",
        "none:0all-count:m{host=not_key()}",
        "p99:1dc-dev-zero:m{host=iwildcard(we*)}",
        r#"{"start":"1h-ago","timezone":"Europe/Berlin","useCalendar":true,"queries":[{"aggregator":"sum","metric":"m","downsample":"1n-sum","rate":true,"rateOptions":{"counter":true},"filters":[{"type":"wildcard","tagk":"host","filter":"*","groupBy":true}],"tags":{"dc":"a|b"}}]}"#,
    ];
    let expressions = [
        "a + b * -2 / (c1 % 3) > 1.5e3 && !d || a eq b ? a : 0x1F",
        "a ?: b - 017 <= c div 2 mod 5 and not d",
        r#"{"startTime":1356998400,"endTime":"5","tsuid":"0aFF","description":"d","custom":{"a":1}}"#,
        r#"[{"startTime":1356998400123,"notes":"n"},{"startTime":1}]"#,
        r#"{"time":{"start":"1h-ago","aggregator":"sum","downsampler":{"interval":"1m","aggregator":"avg"}},"filters":[{"id":"f","tags":[{"type":"wildcard","tagk":"host","filter":"*","groupBy":true}]}],"metrics":[{"id":"a","metric":"m","filter":"f","fillPolicy":{"policy":"nan"}},{"id":"b","metric":"n"}],"expressions":[{"id":"e","expr":"a + b","join":{"operator":"intersection","useQueryTags":true}},{"id":"g","expr":"e * 2 - a"}],"outputs":[{"id":"g","alias":"x"}]}"#,
    ];
    let words: [&[u8]; 17] = [
        b"?",
        b":",
        b"{",
        b"}",
        b"(",
        b")",
        b",",
        b"=",
        b"|",
        b"*",
        b"-",
        b" ",
        b"\n",
        b"\"",
        b"\xff",
        b"99999999999999999999",
        b"0all-",
    ];
    let bytes = |texts: &[&str]| -> Vec<Vec<u8>> {
        texts.iter().map(|text| text.as_bytes().to_vec()).collect()
    };
    run(
        "opentsdb_telnet",
        &bytes(&lines),
        &words,
        targets::opentsdb_telnet,
    );
    run(
        "opentsdb_expressions",
        &bytes(&expressions),
        &words,
        targets::opentsdb_expressions,
    );
    run(
        "opentsdb_query",
        &bytes(&queries),
        &words,
        targets::opentsdb_query,
    );
}

#[test]
fn iotdb() {
    let tablet = InsertTabletRequest {
        session_id: 1,
        device: "root.sg.d1",
        measurements: vec!["s1", "s2"],
        values: &[0, 0, 0, 1, 0, 0, 0, 2, b'a', b'b', 1, 1, 0],
        times: &[0, 0, 0, 0, 0, 0, 0, 1],
        types: vec![1, 5],
        rows: 1,
        writes_to_table: None,
        is_compressed: Some(false),
    };
    let frames = [WireProtocol::Binary, WireProtocol::Compact].map(|protocol| {
        let head = MessageHead {
            protocol,
            kind: MessageKind::Call,
            method: "insertTablet",
            sequence: 1,
        };
        write_call(&head, |writer| writer.field(1, &tablet))
    });
    let words: [&[u8]; 8] = [
        b"\xff\xff\xff\x7f",
        b"\0\0\0\0",
        b"\x0c\0\x01",
        b"\x0f",
        b"\x80",
        b"insertRecord",
        b"insertRecords",
        b"\xff",
    ];
    run("iotdb_frame", &frames, &words, targets::iotdb_frame);
    let statements = [
        "select last s1, count(s2) as `a b` from root.sg.*, root.** where time >= now() - 1d and not (s1 \
         in (1, 'x') or s2 is null) group by ([2022-01-01T00:00:00+08:00, 9), 1h, 5m), level = 1 fill(0) \
         order by time desc limit 5 offset 1 slimit 2 align by device",
        "insert into root.sg.`d.1`(time, s1) aligned values (1, X'0a'), (2, -1.5e3)",
        "create aligned timeseries root.sg.d1(s1 INT32 encoding=RLE, s2 TEXT)",
        "count timeseries root.** group by level = 2",
        "root.sg.`a``b`.d*.**",
    ];
    let statements = statements.map(|text| text.as_bytes().to_vec());
    let words: [&[u8]; 12] = [
        b"`",
        b"'",
        b"(",
        b")",
        b"[",
        b".",
        b"*",
        b"**",
        b" not ",
        b"--",
        b"\xff",
        b"99999999999999999999",
    ];
    run(
        "iotdb_statement",
        &statements,
        &words,
        targets::iotdb_statement,
    );
}

#[test]
fn tdengine() {
    let seeds = [
        "INSERT INTO d1 USING db.meters (location, `g 1`) TAGS ('a''b', -3) (ts, c) VALUES (now+1a-2s, 1.5e3) \
         ('2024-01-01T00:00:00+08:00', \"x\\n\"), (today(), NULL) d2 VALUES (0x1F, true, '\\xaa')",
        "SELECT _wstart, last(*), avg(v) + 1 AS a FROM (SELECT * FROM db.t m WHERE ts > now - 1d AND \
         info->'k' = 1 OR v NOT IN (1, 2)) PARTITION BY tbname INTERVAL(1n, 2d) SLIDING(1d) \
         FILL(VALUE, 0) HAVING count(*) > 1 ORDER BY 1 DESC SLIMIT 1 LIMIT 2, 3",
        "CREATE STABLE IF NOT EXISTS s (ts TIMESTAMP, c INT UNSIGNED) TAGS (g NCHAR(8)) -- x\n",
        "/KfeAzX/f9na8qdtNZmtONryp201ma04bEl8LcvLUd7a8qdtNZmtONryp201ma04",
    ];
    let words: [&[u8]; 16] = [
        b"(",
        b")",
        b",",
        b" ",
        b"'",
        b"\\",
        b"`",
        b".",
        b"-",
        b"+",
        b"now",
        b" using ",
        b" values ",
        b"1y",
        b"null",
        "ü".as_bytes(),
    ];
    let seeds: Vec<_> = seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect();
    run("tdengine", &seeds, &words, targets::tdengine);
}

/// A binary message of TDengine's WebSocket.
fn taos_message(action: u64, rest: &[u8]) -> Vec<u8> {
    let numbers = [17_u64, 3, action].map(u64::to_le_bytes);
    [&numbers.concat()[..], rest].concat()
}

#[test]
fn tdengine_message() {
    let mut columns = [
        TaosType::Timestamp,
        TaosType::VarChar(8),
        TaosType::NChar(8),
    ]
    .map(|kind| RawColumn::new(kind, 3));
    for column in &mut columns {
        column.null();
    }
    for _ in 0..2 {
        columns[0].integer(1_700_000_000_000);
        columns[1].text("ab").expect("a short text");
        columns[2].text("日本").expect("a short text");
    }
    let block = raw_block(&columns, 3).expect("a small block");
    let statement = |sql: &str| {
        let length = u32::try_from(sql.len()).expect("a short text");
        [&[1, 0][..], &length.to_le_bytes(), sql.as_bytes()].concat()
    };
    let bound_column = [
        &[
            22, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0,
        ][..],
        &[
            26, 0, 0, 0, 8, 0, 0, 0, 1, 0, 0, 0, 0, 1, 4, 0, 0, 0, 4, 0, 0, 0, b'a', b'b', b'c',
            b'd',
        ],
    ]
    .concat();
    let head = [28 + 5 + 4 + 48, 1, 0, 2, 28, 0, 33].map(u32::to_le_bytes);
    let bound = [
        &[1, 0, 255, 255, 255, 255][..],
        &head.concat(),
        &[3, 0, b'd', b'1', 0],
        &[48, 0, 0, 0],
        &bound_column,
    ]
    .concat();
    let seeds = [
        taos_message(1, &block),
        taos_message(2, &block),
        taos_message(
            6,
            &statement("insert into ? using st tags(?) (ts, v) values(?, 'x')"),
        ),
        taos_message(10, &statement("select `?` from t where v > ? and b = '?'")),
        taos_message(7, &[1, 0]),
        taos_message(9, &bound),
    ];
    let words: [&[u8]; 8] = [
        b"?",
        b"(",
        b")",
        b",",
        b"'",
        b"\0\0\0\0",
        &[255; 4],
        &[1, 0, 0, 0],
    ];
    run(
        "tdengine_message",
        &seeds,
        &words,
        targets::tdengine_message,
    );
}

#[test]
fn influxql() {
    let seeds = [
        "SELECT mean(\"v\") AS m, 2 * -max(w) INTO a.b.:MEASUREMENT FROM x, /y/, (SELECT DISTINCT z \
         FROM db..\"q\") WHERE time > now() - 1h30m AND (t =~ /a\\/b/ OR u != 'it\\'s') GROUP BY \
         time(1m, 5s), *, /h/ fill(1.5) ORDER BY time DESC LIMIT 1 OFFSET 2 SLIMIT 3 SOFFSET 4 tz('UTC')",
        "SHOW TAG VALUES EXACT CARDINALITY ON d FROM m WITH KEY IN (a, \"b\") WHERE c = 'd'; \
         CREATE CONTINUOUS QUERY q ON d RESAMPLE EVERY 1m FOR 2h BEGIN SELECT count(*) INTO x FROM y \
         GROUP BY time(1h) END -- c\n; GRANT ALL PRIVILEGES ON d TO u /* c */; KILL QUERY 5",
    ];
    let words: [&[u8]; 16] = [
        b"(",
        b")",
        b",",
        b" ",
        b"'",
        b"\"",
        b"/",
        b"\\",
        b"::",
        b"-",
        b"$p",
        b"\n",
        b"\xff",
        "µ".as_bytes(),
        b"99999999999999999999",
        b"(SELECT ",
    ];
    run(
        "influxql",
        &seeds.map(|seed| seed.as_bytes().to_vec()),
        &words,
        targets::influxql,
    );
}

/// The handle of a statement with parameters of every type that is taken.
fn bound_handle() -> FlightHandle {
    use arrow_array::{ArrayRef, Float32Array, RecordBatch, StringArray, StringViewArray};
    let tags: arrow_array::DictionaryArray<arrow_array::types::Int16Type> =
        vec![Some("a"), None, Some("b")].into_iter().collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("$1", Arc::new(tags)),
        (
            "$2",
            Arc::new(StringArray::from(vec![Some("text"), None, Some("")])),
        ),
        (
            "$3",
            Arc::new(StringViewArray::from(vec![
                "a text of more than twelve bytes",
                "",
                "x",
            ])),
        ),
        (
            "$4",
            Arc::new(Float32Array::from(vec![Some(1.0), None, Some(2.0)])),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let (generator, options) = (IpcDataGenerator::default(), IpcWriteOptions::default());
    let mut tracker = DictionaryTracker::new(false);
    let schema =
        generator.schema_to_bytes_with_dictionary_tracker(&batch.schema(), &mut tracker, &options);
    let encoded = generator.encode(
        &batch,
        &mut tracker,
        &options,
        &mut IpcWriteContext::default(),
    );
    let (dictionaries, rows) = encoded.expect("it can be written");
    let mut handle = FlightHandle::new("plant", "SELECT $1", StatementLanguage::Sql);
    let messages = std::iter::once(schema).chain(dictionaries).chain([rows]);
    handle.parameters = messages
        .map(|message| BoundMessage {
            header: message.ipc_message.clone().into(),
            body: message.arrow_data.clone().into(),
        })
        .collect();
    handle
}

#[test]
fn flight_tickets() {
    let json = br#"{"database": "d", "sql_query": "SELECT $n", "query_type": "sql", "params": {"n": [1]}}"#;
    run(
        "flight ticket",
        &[bound_handle().write().to_vec(), json.to_vec()],
        &[b"{", b"[", b"\"database\":", b"\xff\xff\xff\xff\x7f"],
        targets::flight_ticket,
    );
}

#[test]
fn flux() {
    let seeds = [
        "import s \"strings\"\noption v = {timeRangeStart: -1h, windowPeriod: 1m30s}\n\
         data = from(bucket: \"b\") |> range(start: v.timeRangeStart, stop: 2024-01-01T00:00:00.5Z)\n\
         |> filter(fn: (r) => r[\"_measurement\"] == \"m\" and r.h =~ /^a\\/b/ or not exists r.x)",
        "f = (tables=<-, n=1) => { m = n + 1 return tables |> limit(n: m) }\n\
         data |> f(n: -2) |> map(fn: (r) => ({r with v: if r.v > 1.5 then \"a ${r.v * 2.0} b\" else [1, 2][0]}))\n\
         |> yield(name: \"x\") // c\n",
    ];
    let words: [&[u8]; 16] = [
        b"(",
        b")",
        b"{",
        b"}",
        b"|>",
        b"=>",
        b"<-",
        b"${",
        b"\"",
        b"/",
        b"=~",
        b" and ",
        b" if ",
        b"1h",
        b"2024-01-01",
        b"\\x",
    ];
    run(
        "flux",
        &seeds.map(|seed| seed.as_bytes().to_vec()),
        &words,
        targets::flux,
    );
}

#[test]
fn tag_keys() {
    let mut key = TagKey::default();
    key.push(0, TagValueRef::String("pump-7"));
    key.push(2, TagValueRef::I64(i64::MIN));
    key.push(9, TagValueRef::Bool(true));
    run(
        "tag key",
        &[key.as_bytes().to_vec(), Vec::new()],
        &[],
        targets::tag_key,
    );
}

#[test]
fn tsfiles() {
    let seeds: Vec<_> = ["v4-table", "v4-tree", "v3-aligned", "v3-tree"]
        .iter()
        .map(|name| golden(&format!("tsfile/{name}.tsfile")))
        .collect();
    run("tsfile", &seeds, &[b"TsFile"], targets::tsfile);
}
