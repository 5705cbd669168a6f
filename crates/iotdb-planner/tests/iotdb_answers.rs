//! Statements of IoTDB over stored points, whose answers follow from IoTDB's rules.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue may panic")]

mod support;

use support::Harness;

/// Two devices: the second one has no temperature at 20, and a status.
async fn harness() -> Harness {
    let harness = Harness::new();
    for statement in [
        "CREATE DATABASE root.ln",
        "INSERT INTO root.ln.wf1.d1(time, temp, speed) VALUES (10, 1.5, 100), (20, 2.5, 200), (30, 4.5, 300)",
        "INSERT INTO root.ln.wf1.d2(time, temp, status) VALUES (10, 10, true), (20, null, false), (40, 30, true)",
        "INSERT INTO root.ln.wf2.d3(time, temp) VALUES (15, -7)",
    ] {
        harness.done(statement).await;
    }
    harness
}

#[tokio::test]
async fn raw_values_are_joined_by_time() {
    let h = harness().await;
    assert_eq!(
        h.rows("SELECT temp, speed FROM root.ln.wf1.d1").await,
        "Time INT?,root.ln.wf1.d1.temp DOUBLE,root.ln.wf1.d1.speed DOUBLE\n\
         10,1.5,100.0\n20,2.5,200.0\n30,4.5,300.0\n"
            .replace("INT?", "TIMESTAMP")
    );
    assert_eq!(
        h.rows("SELECT temp, status FROM root.ln.wf1.*").await,
        "Time TIMESTAMP,root.ln.wf1.d1.temp DOUBLE,root.ln.wf1.d2.temp DOUBLE,root.ln.wf1.d2.status BOOLEAN\n\
         10,1.5,10.0,true\n20,2.5,,false\n30,4.5,,\n40,,30.0,true\n"
    );
    assert_eq!(
        h.rows("SELECT ** FROM root.ln WHERE time >= 15 AND time < 30")
            .await,
        "Time TIMESTAMP,root.ln.wf1.d1.speed DOUBLE,root.ln.wf1.d1.temp DOUBLE,\
         root.ln.wf1.d2.status BOOLEAN,root.ln.wf1.d2.temp DOUBLE,root.ln.wf2.d3.temp DOUBLE\n\
         15,,,,,-7.0\n20,200.0,2.5,false,,\n"
    );
    assert_eq!(
        h.rows(
            "SELECT temp FROM root.ln.wf1.d2, root.ln.wf2.d3 ORDER BY TIME DESC LIMIT 2 OFFSET 1"
        )
        .await,
        "Time TIMESTAMP,root.ln.wf1.d2.temp DOUBLE,root.ln.wf2.d3.temp DOUBLE\n15,,-7.0\n10,10.0,\n"
    );
    assert_eq!(
        h.rows("SELECT temp FROM root.ln.** SLIMIT 1 SOFFSET 2")
            .await,
        "Time TIMESTAMP,root.ln.wf2.d3.temp DOUBLE\n15,-7.0\n"
    );
    assert_eq!(
        h.rows("SELECT nothing FROM root.ln.**").await,
        "Time TIMESTAMP\n"
    );
}

#[tokio::test]
async fn conditions_look_at_rows_of_all_devices() {
    let h = harness().await;
    assert_eq!(
        h.rows("SELECT speed FROM root.ln.wf1.d1 WHERE temp > 2")
            .await,
        "Time TIMESTAMP,root.ln.wf1.d1.speed DOUBLE\n20,200.0\n30,300.0\n"
    );
    // Both must hold at the same time.
    assert_eq!(
        h.rows("SELECT temp FROM root.ln.wf1.* WHERE temp > 1")
            .await,
        "Time TIMESTAMP,root.ln.wf1.d1.temp DOUBLE,root.ln.wf1.d2.temp DOUBLE\n10,1.5,10.0\n"
    );
    assert_eq!(
        h.rows("SELECT temp FROM root.ln.wf1.d1 WHERE root.ln.wf1.d2.status = false OR time = 30")
            .await,
        "Time TIMESTAMP,root.ln.wf1.d1.temp DOUBLE\n20,2.5\n30,4.5\n"
    );
    assert_eq!(
        h.rows("SELECT temp FROM root.ln.wf1.d1 WHERE nothing > 1")
            .await,
        "Time TIMESTAMP,root.ln.wf1.d1.temp DOUBLE\n"
    );
    assert_eq!(
        h.rows("SELECT temp FROM root.ln.wf1.d1 WHERE temp IN (1.5, 4.5) AND NOT speed BETWEEN 200 AND 400")
            .await,
        "Time TIMESTAMP,root.ln.wf1.d1.temp DOUBLE\n10,1.5\n"
    );
}

#[tokio::test]
async fn expressions_are_columns() {
    let h = harness().await;
    assert_eq!(
        h.rows("SELECT temp + speed, -temp AS minus, abs(temp) FROM root.ln.wf1.d1 LIMIT 1")
            .await,
        "Time TIMESTAMP,root.ln.wf1.d1.temp + root.ln.wf1.d1.speed DOUBLE,minus DOUBLE,\
         abs(root.ln.wf1.d1.temp) DOUBLE\n10,101.5,-1.5,1.5\n"
    );
    assert_eq!(
        h.rows("SELECT temp * 2 > 5 FROM root.ln.wf1.d1, root.ln.wf1.d2")
            .await,
        "Time TIMESTAMP,root.ln.wf1.d1.temp * 2 > 5 BOOLEAN,root.ln.wf1.d2.temp * 2 > 5 BOOLEAN\n\
         10,false,true\n20,false,\n30,true,\n40,,true\n"
    );
    assert_eq!(
        h.rows("SELECT speed / 0 FROM root.ln.wf1.d1 LIMIT 1").await,
        "Time TIMESTAMP,root.ln.wf1.d1.speed / 0 DOUBLE\n10,inf\n"
    );
    assert!(h.fails("SELECT status + 1 FROM root.ln.wf1.d2", 701).await);
    assert!(
        h.fails("SELECT nothing_like(temp) FROM root.ln.wf1.d1", 300)
            .await
    );
}

#[tokio::test]
async fn devices_can_have_rows_of_their_own() {
    let h = harness().await;
    assert_eq!(
        h.rows("SELECT temp, status FROM root.ln.** ALIGN BY DEVICE")
            .await,
        "Time TIMESTAMP,Device TEXT,temp DOUBLE,status BOOLEAN\n\
         10,root.ln.wf1.d1,1.5,\n20,root.ln.wf1.d1,2.5,\n30,root.ln.wf1.d1,4.5,\n\
         10,root.ln.wf1.d2,10.0,true\n20,root.ln.wf1.d2,,false\n40,root.ln.wf1.d2,30.0,true\n\
         15,root.ln.wf2.d3,-7.0,\n"
    );
    assert_eq!(
        h.rows("SELECT * FROM root.ln.wf1.* WHERE temp > 3 ORDER BY time DESC ALIGN BY DEVICE")
            .await,
        "Time TIMESTAMP,Device TEXT,speed DOUBLE,status BOOLEAN,temp DOUBLE\n\
         40,root.ln.wf1.d2,,true,30.0\n30,root.ln.wf1.d1,300.0,,4.5\n10,root.ln.wf1.d2,,true,10.0\n"
    );
    assert_eq!(
        h.rows("SELECT count(temp), max_value(speed) FROM root.ln.** ALIGN BY DEVICE")
            .await,
        "Device TEXT,count(temp) INT64,max_value(speed) DOUBLE\n\
         root.ln.wf1.d1,3,300.0\nroot.ln.wf1.d2,2,\nroot.ln.wf2.d3,1,\n"
    );
    assert_eq!(
        h.rows("SELECT sum(temp) FROM root.ln.wf1.* GROUP BY ([0, 40), 20ms) ALIGN BY DEVICE")
            .await,
        "Time TIMESTAMP,Device TEXT,sum(temp) DOUBLE\n\
         0,root.ln.wf1.d1,1.5\n20,root.ln.wf1.d1,7.0\n\
         0,root.ln.wf1.d2,10.0\n20,root.ln.wf1.d2,\n"
    );
}

#[tokio::test]
async fn aggregates_are_computed() {
    let h = harness().await;
    assert_eq!(
        h.rows(
            "SELECT count(temp), sum(temp), avg(speed), min_value(temp), max_value(temp), first_value(temp), \
             last_value(temp), min_time(temp), max_time(temp), extreme(temp), time_duration(temp) \
             FROM root.ln.wf1.d1"
        )
        .await,
        "count(root.ln.wf1.d1.temp) INT64,sum(root.ln.wf1.d1.temp) DOUBLE,avg(root.ln.wf1.d1.speed) DOUBLE,\
         min_value(root.ln.wf1.d1.temp) DOUBLE,max_value(root.ln.wf1.d1.temp) DOUBLE,\
         first_value(root.ln.wf1.d1.temp) DOUBLE,last_value(root.ln.wf1.d1.temp) DOUBLE,\
         min_time(root.ln.wf1.d1.temp) INT64,max_time(root.ln.wf1.d1.temp) INT64,\
         extreme(root.ln.wf1.d1.temp) DOUBLE,time_duration(root.ln.wf1.d1.temp) INT64\n\
         3,8.5,200.0,1.5,4.5,1.5,4.5,10,30,4.5,20\n"
    );
    assert_eq!(
        h.rows("SELECT count(temp), extreme(temp) FROM root.ln.**")
            .await,
        "count(root.ln.wf1.d1.temp) INT64,count(root.ln.wf1.d2.temp) INT64,count(root.ln.wf2.d3.temp) INT64,\
         extreme(root.ln.wf1.d1.temp) DOUBLE,extreme(root.ln.wf1.d2.temp) DOUBLE,\
         extreme(root.ln.wf2.d3.temp) DOUBLE\n3,2,1,4.5,30.0,-7.0\n"
    );
    assert_eq!(
        h.rows(
            "SELECT count(temp) + 1, sum(temp) / count(temp) FROM root.ln.wf1.d1 WHERE time > 1000"
        )
        .await
        .lines()
        .last(),
        Some("1.0,")
    );
    // A condition on values of several devices looks at joined rows.
    assert_eq!(
        h.rows(
            "SELECT count(temp), count(status) FROM root.ln.wf1.* WHERE root.ln.wf1.d1.temp < 3"
        )
        .await,
        "count(root.ln.wf1.d1.temp) INT64,count(root.ln.wf1.d2.temp) INT64,\
         count(root.ln.wf1.d2.status) INT64\n2,1,2\n"
    );
    assert_eq!(
        h.rows("SELECT avg(temp * 2), stddev_pop(temp), variance(temp), mode(speed) FROM root.ln.wf1.d1")
            .await
            .lines()
            .next(),
        Some(
            "avg(root.ln.wf1.d1.temp * 2) DOUBLE,stddev_pop(root.ln.wf1.d1.temp) DOUBLE,\
             variance(root.ln.wf1.d1.temp) DOUBLE,mode(root.ln.wf1.d1.speed) DOUBLE"
        )
    );
    for (statement, code) in [
        ("SELECT sum(status) FROM root.ln.wf1.d2", 701),
        ("SELECT temp, count(temp) FROM root.ln.wf1.d2", 701),
        ("SELECT sum(count(temp)) FROM root.ln.wf1.d2", 701),
        (
            "SELECT temp FROM root.ln.wf1.d2 GROUP BY ([0, 9), 1ms)",
            701,
        ),
    ] {
        assert!(h.fails(statement, code).await, "{statement}");
    }
}

#[tokio::test]
async fn windows_without_rows_are_there() {
    let h = harness().await;
    let header =
        "Time TIMESTAMP,count(root.ln.wf1.d1.temp) INT64,avg(root.ln.wf1.d2.temp) DOUBLE\n";
    assert_eq!(
        h.rows("SELECT count(d1.temp), avg(d2.temp) FROM root.ln.wf1 GROUP BY ([0, 50), 10ms)")
            .await,
        format!("{header}0,0,\n10,1,10.0\n20,1,\n30,1,\n40,0,30.0\n")
    );
    assert_eq!(
        h.rows(
            "SELECT count(d1.temp), avg(d2.temp) FROM root.ln.wf1 GROUP BY ([0, 50), 20ms) \
             HAVING count(d1.temp) > 0 ORDER BY TIME DESC"
        )
        .await,
        format!("{header}20,2,\n0,1,10.0\n")
    );
    // Behind the begin, up to the end; and overlapping ones.
    assert_eq!(
        h.rows("SELECT count(d1.temp), avg(d2.temp) FROM root.ln.wf1 GROUP BY ((0, 40], 20ms)")
            .await,
        format!("{header}20,2,10.0\n40,1,30.0\n")
    );
    assert_eq!(
        h.rows(
            "SELECT count(d1.temp), avg(d2.temp) FROM root.ln.wf1 GROUP BY ([0, 30), 20ms, 10ms)"
        )
        .await,
        format!("{header}0,1,10.0\n10,2,10.0\n20,1,\n")
    );
    assert_eq!(
        h.rows(
            "SELECT avg(temp) FROM root.ln.wf1.d2 GROUP BY ([0, 50), 10ms) FILL(PREVIOUS) LIMIT 4"
        )
        .await,
        "Time TIMESTAMP,avg(root.ln.wf1.d2.temp) DOUBLE\n0,\n10,10.0\n20,10.0\n30,10.0\n"
    );
}

#[tokio::test]
async fn levels_join_devices() {
    let h = harness().await;
    assert_eq!(
        h.rows("SELECT count(temp), max_value(temp) FROM root.ln.** GROUP BY LEVEL = 2")
            .await,
        "count(root.*.wf1.*.temp) INT64,count(root.*.wf2.*.temp) INT64,\
         max_value(root.*.wf1.*.temp) DOUBLE,max_value(root.*.wf2.*.temp) DOUBLE\n5,1,30.0,-7.0\n"
    );
    assert_eq!(
        h.rows("SELECT sum(temp) FROM root.ln.** GROUP BY ([0, 40), 20ms), LEVEL = 1")
            .await,
        "Time TIMESTAMP,sum(root.ln.*.*.temp) DOUBLE\n0,4.5\n20,7.0\n"
    );
}

#[tokio::test]
async fn newest_points_are_found() {
    let h = harness().await;
    let header = "Time TIMESTAMP,Timeseries TEXT,Value TEXT,DataType TEXT\n";
    assert_eq!(
        h.rows("SELECT LAST temp FROM root.ln.wf1.*").await,
        format!("{header}30,root.ln.wf1.d1.temp,4.5,DOUBLE\n40,root.ln.wf1.d2.temp,30.0,DOUBLE\n")
    );
    h.done("INSERT INTO root.ln.wf1.d2(time, status) VALUES (50, false)")
        .await;
    assert_eq!(
        h.rows("SELECT LAST * FROM root.ln.wf1.d2 ORDER BY TIME DESC")
            .await,
        format!(
            "{header}50,root.ln.wf1.d2.status,false,BOOLEAN\n40,root.ln.wf1.d2.temp,30.0,DOUBLE\n"
        )
    );
    assert_eq!(
        h.rows("SELECT LAST * FROM root.ln.wf1.d2 WHERE time >= 45")
            .await,
        format!("{header}50,root.ln.wf1.d2.status,false,BOOLEAN\n")
    );
    assert_eq!(
        h.rows("SELECT LAST temp FROM root.ln.wf1.d2 WHERE time < 40")
            .await,
        format!("{header}10,root.ln.wf1.d2.temp,10.0,DOUBLE\n")
    );
}
