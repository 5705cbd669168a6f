//! TDengine's REST API and WebSocket. They run on the same server as the other HTTP APIs (`crate::http`).

use crate::http::serve_tdengine;
use crate::listener::ListenerKind;

/// How the server offers it.
pub(crate) const LISTENER: ListenerKind = ListenerKind {
    setting: "tdengine",
    protocol: "TDengine",
    title: "TDengine",
    address: |config| config.tdengine,
    url: |address, has_tls| {
        let scheme = if has_tls { "https" } else { "http" };
        format!("{scheme}://{address} (and WebSocket)")
    },
    serve: |listener, context| Box::pin(serve_tdengine(listener, context, LISTENER.setting)),
};
