//! Marigram inside a program: opens a directory, writes rows, runs SQL, and gets Arrow back.
//!
//! Run it with `cargo run --release -p marigram --example embedded`.

use marigram::arrow::util::pretty::print_batches;
use marigram::{BatchBuilder, FieldValueRef, Marigram, TagValueRef};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = Marigram::open("./embedded-data")?;

    // Rows: a slot for each device, then a time and values for each row. The table and its columns
    // are created automatically. `write` returns when the rows are safe on disk.
    let mut rows = BatchBuilder::new("weather");
    let north = rows.slot([("station", TagValueRef::String("north"))]);
    let south = rows.slot([("station", TagValueRef::String("south"))]);
    let start = 1_767_225_600_000_000_000; // 2026-01-01, in nanoseconds
    for minute in 0..60 {
        for (station, offset) in [(north, 0.0), (south, 7.5)] {
            rows.row(station, start + minute * 60_000_000_000);
            rows.field(
                "temp",
                FieldValueRef::F64(offset + (minute as f64 / 10.0).sin()),
            );
        }
    }
    let report = db.write("main", &rows.finish())?;
    println!("{} rows stored", report.stored);

    // SQL: the answer is Arrow record batches.
    let answer = db.sql(
        "SELECT time_bucket(INTERVAL '15 minutes', time) AS quarter, station, avg(temp) AS temp
         FROM weather GROUP BY quarter, station ORDER BY station, quarter",
    )?;
    print_batches(&answer)?;

    db.close()?;
    Ok(())
}
