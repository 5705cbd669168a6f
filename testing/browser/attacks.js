// Everything by which a page can send something to a server of another origin. `base` is the server,
// `postgres` its other port. Each attack tells what the page saw: `blocked`, or what got through.
async ({ base, postgres }) => {
  const drop = "DROP TABLE canary";
  const ask = (sql) => `${base}/api/v1/sql?q=${encodeURIComponent(sql)}`;
  const sql = `${base}/api/v1/sql`;
  const write = `${base}/write?db=main`;
  const line = "intruder v=1";
  const seen = {};
  const within = (promise) =>
    Promise.race([promise, new Promise((done) => setTimeout(() => done("no answer"), 5000))]);
  const attack = async (name, act) => {
    try {
      seen[name] = await within(act());
    } catch (error) {
      seen[name] = `blocked`;
    }
  };
  const fetched = async (url, options) => {
    const answer = await fetch(url, options);
    return answer.type === "opaque" ? "opaque" : `status ${answer.status}: ${await answer.text()}`;
  };
  // An element that loads something, or not.
  const loaded = (tag, attributes) =>
    new Promise((done) => {
      const element = Object.assign(document.createElement(tag), attributes);
      element.onload = () => done(tag === "iframe" ? "opaque" : "loaded");
      element.onerror = () => done("blocked");
      document.body.append(element);
    });
  const form = (enctype, action, name, value) =>
    new Promise((done) => {
      const frame = document.createElement("iframe");
      frame.name = `frame${Math.random()}`;
      const form = document.createElement("form");
      Object.assign(form, { method: "POST", enctype, action, target: frame.name });
      const field = Object.assign(document.createElement("textarea"), { name, value });
      form.append(field);
      document.body.append(frame, form);
      frame.onload = () => done("opaque");
      form.submit();
    });

  for (const mode of ["cors", "no-cors"]) {
    await attack(`fetch ${mode} POST sql`, () =>
      fetched(sql, { method: "POST", mode, body: drop }));
    await attack(`fetch ${mode} POST write`, () =>
      fetched(write, { method: "POST", mode, body: line }));
    await attack(`fetch ${mode} POST backup`, () =>
      fetched(`${base}/api/v1/backup`, { method: "POST", mode }));
    await attack(`fetch ${mode} GET sql`, () => fetched(ask(drop), { mode }));
    await attack(`fetch ${mode} GET that reads`, () => fetched(ask("SELECT * FROM canary"), { mode }));
    await attack(`fetch ${mode} metrics`, () => fetched(`${base}/metrics`, { mode }));
    await attack(`fetch ${mode} HEAD`, () => fetched(ask(drop), { method: "HEAD", mode }));
  }
  await attack("fetch that asks first", () =>
    fetched(sql, { method: "POST", headers: { "Content-Type": "application/json" }, body: drop }));
  await attack("fetch with credentials", () =>
    fetched(write, { method: "POST", credentials: "include", body: line }));
  await attack("fetch keepalive", () =>
    fetched(sql, { method: "POST", mode: "no-cors", keepalive: true, body: drop }));
  await attack("XMLHttpRequest", () =>
    new Promise((done) => {
      const request = new XMLHttpRequest();
      request.open("POST", sql);
      request.onload = () => done(`status ${request.status}`);
      request.onerror = () => done("blocked");
      request.send(drop);
    }));
  for (const [name, url, body] of [["sql", sql, drop], ["write", write, line]]) {
    await attack(`sendBeacon ${name}`, async () => {
      navigator.sendBeacon(url, body);
      navigator.sendBeacon(url, new Blob([body], { type: "text/plain" }));
      await new Promise((done) => setTimeout(done, 200));
      return "opaque";
    });
    for (const kind of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
      const [first, rest] = [body.slice(0, 4), body.slice(4)];
      await attack(`form ${kind} ${name}`, () => form(kind, url, first, rest));
    }
  }
  await attack("form text/plain with a statement as its name", () =>
    form("text/plain", sql, `${drop}; SELECT '`, "'"));
  await attack("img", () => loaded("img", { src: ask(drop) }));
  await attack("img write", () => loaded("img", { src: write }));
  await attack("script", () => loaded("script", { src: ask("SELECT 1") }));
  await attack("stylesheet", () => loaded("link", { rel: "stylesheet", href: ask(drop) }));
  await attack("iframe", () => loaded("iframe", { src: ask(drop) }));
  await attack("EventSource", () =>
    new Promise((done) => {
      const source = new EventSource(ask(drop));
      source.onopen = () => done("open");
      source.onerror = () => { source.close(); done("blocked"); };
    }));
  await attack("WebSocket", () =>
    new Promise((done) => {
      const socket = new WebSocket(ask(drop).replace("http:", "ws:"));
      socket.onopen = () => done("open");
      socket.onerror = () => done("blocked");
    }));
  // The other protocol: a start of a session and a statement as the body of a request.
  const session = "\0\0\0\x08\x04\xd2\x16/" + "Q\0\0\0\x1c" + drop + "\0";
  for (const mode of ["cors", "no-cors"]) {
    await attack(`PostgreSQL's port ${mode}`, () =>
      fetched(postgres, { method: "POST", mode, body: session }));
  }
  return seen;
}
