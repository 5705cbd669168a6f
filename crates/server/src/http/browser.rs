//! What a web page in a browser may do: nothing, unless the operator allowed its origin.
//!
//! There are no passwords yet. What keeps a web page from using the port of its reader's own
//! machine is what browsers send with every request: the `Origin` of the page, `Sec-Fetch-Site`,
//! and the name in `Host` under which the page found the server. A page that rebinds its own name
//! to this machine's address is of the same origin, but its name is not [allowed](hosts). Programs
//! other than browsers send no `Origin` and pass. `docs/decisions/0021-what-a-browser-may-do.md`
//! explains why.
//!
//! Invariant: a refused request has no effect, and its body is not read.

mod hosts;
mod origins;

use crate::config::ServerConfig;
use crate::http::error::HttpError;
use axum::extract::Request;
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode, Version};
use axum::response::{IntoResponse, Response};
use hosts::{Authority, HostRule};
use origins::OriginRule;
use std::net::IpAddr;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const ASKS_PRIVATE: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOWS_PRIVATE: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// Seconds for which a browser may cache the answer to a preflight request.
const PREFLIGHT_AGE_S: &str = "600";

/// Which hosts and origins are allowed.
#[derive(Debug)]
pub(crate) struct BrowserRules {
    hosts: Vec<HostRule>,
    origins: Vec<OriginRule>,
}

/// A request that was admitted.
#[derive(Debug)]
pub(crate) struct AdmittedRequest {
    /// The foreign origin that the answer is for.
    origin: Option<HeaderValue>,
    /// The preflight request, if it is one.
    preflight: Option<PreflightRequest>,
}

#[derive(Debug)]
struct PreflightRequest {
    headers: Option<HeaderValue>,
    private: bool,
}

impl BrowserRules {
    /// The rules that `config` sets.
    ///
    /// # Errors
    /// The setting and the entry that makes no sense.
    pub(crate) fn new(config: &ServerConfig) -> Result<Self, (&'static str, String)> {
        let hosts = config.allowed_hosts.iter().map(|rule| HostRule::new(rule));
        let origins = config.allowed_origins.iter();
        let origins = origins.map(|rule| OriginRule::new(rule));
        Ok(Self {
            hosts: hosts
                .collect::<Result<_, _>>()
                .map_err(|reason| ("allowed_hosts", reason))?,
            origins: origins
                .collect::<Result<_, _>>()
                .map_err(|reason| ("allowed_origins", reason))?,
        })
    }

    /// Whether `request`, which arrived at the address `local`, is admitted.
    ///
    /// # Errors
    /// 403 if its host or its origin is not allowed, 400 if they are malformed.
    pub(crate) fn admit(
        &self,
        request: &Request,
        local: IpAddr,
    ) -> Result<AdmittedRequest, HttpError> {
        let headers = request.headers();
        let host = self.check_host(request, local)?;
        let origin = match only(headers, &header::ORIGIN)? {
            None => None,
            Some(origin) => self.check_origin(origin, host.as_ref())?,
        };
        if origin.is_none() {
            check_site(headers)?;
        }
        let asks = headers.get(header::ACCESS_CONTROL_REQUEST_METHOD);
        let is_preflight =
            origin.is_some() && request.method() == Method::OPTIONS && asks.is_some();
        let preflight = is_preflight.then(|| PreflightRequest {
            headers: headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS).cloned(),
            private: headers.contains_key(ASKS_PRIVATE),
        });
        Ok(AdmittedRequest { origin, preflight })
    }

    /// The host that the request names; `None` for HTTP versions without `Host`.
    fn check_host(&self, request: &Request, local: IpAddr) -> Result<Option<Authority>, HttpError> {
        let named = only(request.headers(), &header::HOST)?;
        if named.is_none() && request.version() >= Version::HTTP_11 {
            return Err(HttpError::bad_request("the header Host is missing"));
        }
        let named = named.map(|value| value.to_str().unwrap_or("?"));
        // A target such as `http://name/path` also names the host.
        let target = request
            .uri()
            .authority()
            .map(axum::http::uri::Authority::as_str);
        let mut host = None;
        for text in named.into_iter().chain(target) {
            let authority = Authority::parse(text);
            let is_allowed = authority.as_ref().is_some_and(|authority| {
                authority.is_own(local) || self.hosts.iter().any(|rule| rule.allows(authority))
            });
            if !is_allowed {
                return Err(refused(format!(
                    "the host '{}' is not one under which this server accepts requests; if it is a name \
                     of this server, add it to allowed_hosts in the server's configuration",
                    text.escape_debug()
                )));
            }
            host = authority;
        }
        Ok(host)
    }

    /// The origin if it is foreign and allowed; `None` if it is the server's own.
    fn check_origin(
        &self,
        origin: &HeaderValue,
        host: Option<&Authority>,
    ) -> Result<Option<HeaderValue>, HttpError> {
        let text = origin.to_str().unwrap_or("?");
        if host.is_some_and(|host| origins::is_of(text, host)) {
            return Ok(None);
        }
        if self.origins.iter().any(|rule| rule.allows(text)) {
            return Ok(Some(origin.clone()));
        }
        Err(refused(format!(
            "pages of '{}' may not use this server; if they should, add it to allowed_origins in \
             the server's configuration",
            text.escape_debug()
        )))
    }
}

/// Refuses requests that a page of another site embeds, links to or sends without naming its
/// origin.
fn check_site(headers: &HeaderMap) -> Result<(), HttpError> {
    match only(headers, &SEC_FETCH_SITE)?.map(HeaderValue::as_bytes) {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => Err(refused(
            "a page of another site may not use this server (Sec-Fetch-Site); if it should, let it \
             send its request with CORS and add its origin to allowed_origins in the server's \
             configuration"
                .to_owned(),
        )),
    }
}

/// The value of a header that may occur at most once.
fn only<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a HeaderValue>, HttpError> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        _ => Err(HttpError::bad_request(format!(
            "the header {name} occurs more than once"
        ))),
    }
}

fn refused(message: String) -> HttpError {
    HttpError::new(StatusCode::FORBIDDEN, "forbidden", message)
}

impl AdmittedRequest {
    /// The answer to a preflight request.
    pub(crate) fn preflight(&self) -> Option<Response> {
        let asked = self.preflight.as_ref()?;
        let mut response = StatusCode::NO_CONTENT.into_response();
        let headers = response.headers_mut();
        let mut put = |name, value| headers.insert(name, HeaderValue::from_static(value));
        put(header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, POST");
        put(header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_AGE_S);
        if asked.private {
            put(ALLOWS_PRIVATE, "true");
        }
        if let Some(names) = &asked.headers {
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
        }
        Some(response)
    }

    /// Tells the browser which origin may read the answer.
    pub(crate) fn mark(self, response: &mut Response) {
        let headers = response.headers_mut();
        mark_refused(headers);
        if let Some(origin) = self.origin {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.append(header::VARY, HeaderValue::from_static("Origin"));
            let exposed = HeaderValue::from_static("Retry-After, X-Influxdb-Version");
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        }
    }
}

/// Tells the browser that no page of another origin may use the answer.
pub(super) fn mark_refused(headers: &mut HeaderMap) {
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
}
