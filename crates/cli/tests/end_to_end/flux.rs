//! Flux over HTTP: annotated CSV byte by byte, dialects, parameters, errors.

use crate::server::ServeProcess;
use serde_json::{Value, json};

fn asked(server: &ServeProcess, request: &Value) -> (u16, String) {
    let kind = [("Content-Type", "application/json")];
    let body = request.to_string();
    let reply = server.request("POST", "/api/v2/query?org=any", &kind, body.as_bytes());
    (reply.status, reply.body)
}

const LINES: &str = "weather,station=north temp=1.5,wind=3i 0\n\
                     weather,station=north temp=2.5 10000000000\n\
                     weather,station=south temp=10 500000000";

#[test]
fn tables_leave_as_annotated_csv() {
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &[]);
    assert_eq!(server.write(LINES).status, 204);
    let script = "from(bucket: \"db\") |> range(start: 0, stop: 60)";
    let all = json!({"annotations": ["datatype", "group", "default"]});
    let request = json!({"query": script, "type": "flux", "dialect": all});
    let expected = "#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,double,string,string,string\r\n\
        #group,false,false,true,true,false,false,true,true,true\r\n\
        #default,_result,,,,,,,,\r\n\
        ,result,table,_start,_stop,_time,_value,_field,_measurement,station\r\n\
        ,,0,1970-01-01T00:00:00Z,1970-01-01T00:01:00Z,1970-01-01T00:00:00Z,1.5,temp,weather,north\r\n\
        ,,0,1970-01-01T00:00:00Z,1970-01-01T00:01:00Z,1970-01-01T00:00:10Z,2.5,temp,weather,north\r\n\
        \r\n\
        #datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,long,string,string,string\r\n\
        #group,false,false,true,true,false,false,true,true,true\r\n\
        #default,_result,,,,,,,,\r\n\
        ,result,table,_start,_stop,_time,_value,_field,_measurement,station\r\n\
        ,,1,1970-01-01T00:00:00Z,1970-01-01T00:01:00Z,1970-01-01T00:00:00Z,3,wind,weather,north\r\n\
        \r\n\
        #datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,double,string,string,string\r\n\
        #group,false,false,true,true,false,false,true,true,true\r\n\
        #default,_result,,,,,,,,\r\n\
        ,result,table,_start,_stop,_time,_value,_field,_measurement,station\r\n\
        ,,2,1970-01-01T00:00:00Z,1970-01-01T00:01:00Z,1970-01-01T00:00:00.5Z,10,temp,weather,south\r\n\
        \r\n";
    assert_eq!(asked(&server, &request), (200, expected.to_owned()));
    let script = "a = from(bucket: \"db\") |> range(start: 0, stop: 60)\n\
                  |> filter(fn: (r) => r._field == \"wind\") |> keep(columns: [\"_value\"])\n\
                  a |> yield(name: \"one\")\n a |> count() |> yield(name: \"two\")";
    let kind = [
        ("Content-Type", "application/vnd.flux"),
        ("Accept-Encoding", "identity"),
    ];
    let reply = server.request("POST", "/api/v2/query", &kind, script.as_bytes());
    let expected =
        ",result,table,_value\r\n,one,0,3\r\n\r\n,result,table,_value\r\n,two,0,1\r\n\r\n";
    assert_eq!((reply.status, reply.body.as_str()), (200, expected));
}

#[test]
fn a_request_brings_parameters_and_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &[]);
    assert_eq!(server.write(LINES).status, 204);
    let script = "from(bucket: params.bucket) |> range(start: -1m)\n\
                  |> filter(fn: (r) => r._field == params.field) |> group() |> sum()";
    let text = |text: &str| json!({"type": "StringLiteral", "value": text});
    let member = |name: &str, value: Value| json!({"type": "Property", "key": {"type": "Identifier", "name": name}, "value": value});
    let record = json!({"type": "ObjectExpression",
        "properties": [member("bucket", text("db")), member("field", text("temp"))]});
    let file = json!({"type": "File", "body": [{"type": "OptionStatement", "assignment":
        {"type": "VariableAssignment", "id": {"type": "Identifier", "name": "params"}, "init": record}}]});
    let dialect = json!({"header": false, "delimiter": ";"});
    let request = json!({"query": script, "extern": file, "dialect": dialect,
        "now": "1970-01-01T00:00:20Z"});
    assert_eq!(
        asked(&server, &request),
        (200, ";_result;0;14\r\n\r\n".to_owned())
    );
    let params = json!({"bucket": "db", "field": "wind"});
    let request = json!({"query": script, "params": params, "dialect": {"header": false},
        "now": "1970-01-01T00:00:20Z"});
    assert_eq!(
        asked(&server, &request),
        (200, ",_result,0,3\r\n\r\n".to_owned())
    );
}

#[test]
fn errors_have_a_code_and_a_place() {
    let dir = tempfile::tempdir().unwrap();
    let server = ServeProcess::start(dir.path(), &[]);
    assert_eq!(server.write(LINES).status, 204);
    let ask = |script: &str| {
        let (status, body) = asked(&server, &json!({"query": script}));
        let body: Value = serde_json::from_str(&body).expect(&body);
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        (status, text("code"), text("message"))
    };
    let (status, code, message) =
        ask("from(bucket: \"db\")\n  |> range(start: 0) |> holtWinters()");
    assert_eq!((status, code.as_str()), (400, "invalid"));
    assert_eq!(message, "error @2:25: undefined identifier holtWinters");
    let (status, code, message) = ask("from(bucket: \"none\") |> range(start: 0)");
    assert_eq!((status, code.as_str()), (404, "not found"), "{message}");
    let (status, _, message) = ask("from(bucket: ");
    assert_eq!(status, 400, "{message}");
    assert!(
        message.starts_with("compilation failed: error @1:14"),
        "{message}"
    );
    // The second result fails behind the first one.
    let script = "a = from(bucket: \"db\") |> range(start: 0, stop: 60) |> group()\n\
                  a |> count(column: \"_time\") |> keep(columns: [\"_time\"]) |> yield(name: \"a\")\n\
                  a |> sum(column: \"x\") |> yield(name: \"b\")";
    let (status, body) = asked(&server, &json!({"query": script}));
    assert_eq!(status, 400, "{body}");
    let script = script.replace(" |> group()", " |> filter(fn: (r) => r._field == \"temp\")");
    let (status, body) = asked(&server, &json!({"query": script}));
    let expected = ",result,table,_time\r\n,a,0,2\r\n,a,0,1\r\n\r\n\r\n,error,reference\r\n\
                    ,\"error @3:6: sum: column \"\"x\"\" does not exist\",\r\n";
    assert_eq!((status, body.as_str()), (200, expected));
    for wrong in ["{}", "{\"query\": \"x\", \"type\": \"influxql\"}", "x"] {
        let kind = [("Content-Type", "application/json")];
        let reply = server.request("POST", "/api/v2/query", &kind, wrong.as_bytes());
        assert_eq!(reply.status, 400, "{wrong}: {}", reply.body);
    }
}
