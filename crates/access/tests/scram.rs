//! SCRAM beside a client that others wrote, and messages that no client sends.

use marigram_access::{ChannelBinding, PasswordVerifiers, ScramExchange, ScramRefusal};
use postgres_protocol::authentication::sasl::{self, ScramSha256};
use proptest::prelude::*;
use std::sync::LazyLock;

static VERIFIERS: LazyLock<PasswordVerifiers> =
    LazyLock::new(|| PasswordVerifiers::from_password("pencil").expect("it can be hashed"));

/// A whole login, as far as it goes.
fn login(
    password: &str,
    own: sasl::ChannelBinding,
    is_plus: bool,
    channel: ChannelBinding<'_>,
) -> Result<(), ScramRefusal> {
    let mut client = ScramSha256::new(password.as_bytes(), own);
    let exchange = ScramExchange::begin(&VERIFIERS, client.message(), is_plus, channel)?;
    let challenge = exchange.challenge().to_owned();
    client
        .update(challenge.as_bytes())
        .expect("the client reads it");
    let last = exchange.finish(client.message())?;
    client
        .finish(last.as_bytes())
        .expect("the server knows the password");
    Ok(())
}

#[test]
fn a_client_logs_in() {
    let plain = || sasl::ChannelBinding::unsupported();
    assert_eq!(
        login("pencil", plain(), false, ChannelBinding::None),
        Ok(())
    );
    assert_eq!(
        login("pen", plain(), false, ChannelBinding::None),
        Err(ScramRefusal::Password)
    );
    // A client without channel binding over an encrypted connection.
    let channel = ChannelBinding::ServerEndPoint(b"hash");
    assert_eq!(login("pencil", plain(), false, channel), Ok(()));
}

#[test]
fn a_login_is_bound_to_its_connection() {
    let bound = |hash: &[u8]| sasl::ChannelBinding::tls_server_end_point(hash.to_vec());
    let channel = ChannelBinding::ServerEndPoint(b"hash");
    assert_eq!(login("pencil", bound(b"hash"), true, channel), Ok(()));
    assert_eq!(
        login("pencil", bound(b"other"), true, channel),
        Err(ScramRefusal::Binding)
    );
    // Somebody in between hid that the server can bind.
    let unrequested = sasl::ChannelBinding::unrequested();
    assert_eq!(
        login("pencil", unrequested, false, channel),
        Err(ScramRefusal::Binding)
    );
    let malformed = login("pencil", bound(b"hash"), false, channel);
    assert!(matches!(malformed, Err(ScramRefusal::Malformed(_))));
    let malformed = login("pencil", bound(b"hash"), true, ChannelBinding::None);
    assert!(matches!(malformed, Err(ScramRefusal::Malformed(_))));
}

#[test]
fn a_login_cannot_be_replayed() {
    let mut client = ScramSha256::new(b"pencil", sasl::ChannelBinding::unsupported());
    let first = client.message().to_vec();
    let begin = || ScramExchange::begin(&VERIFIERS, &first, false, ChannelBinding::None);
    let exchange = begin().expect("it is SCRAM");
    client
        .update(exchange.challenge().as_bytes())
        .expect("the client reads it");
    exchange
        .finish(client.message())
        .expect("the password is right");
    let replayed = begin().expect("it is SCRAM").finish(client.message());
    assert!(matches!(replayed, Err(ScramRefusal::Malformed(_))));
}

#[test]
fn a_user_who_does_not_exist_looks_like_one_who_does() {
    let challenge = |name: &str| {
        let decoy = PasswordVerifiers::decoy(name, &[7; 32]);
        let first = b"n,,n=,r=abc";
        let exchange = ScramExchange::begin(&decoy, first, false, ChannelBinding::None);
        exchange.expect("it is SCRAM").challenge().to_owned()
    };
    let salt = |challenge: String| challenge.split(',').nth(1).map(str::to_owned);
    assert_eq!(salt(challenge("ann")), salt(challenge("ann")));
    assert_ne!(salt(challenge("ann")), salt(challenge("bob")));
    let mut client = ScramSha256::new(b"x", sasl::ChannelBinding::unsupported());
    let decoy = PasswordVerifiers::decoy("ann", &[7; 32]);
    let exchange = ScramExchange::begin(&decoy, client.message(), false, ChannelBinding::None);
    let exchange = exchange.expect("it is SCRAM");
    client
        .update(exchange.challenge().as_bytes())
        .expect("the client reads it");
    assert_eq!(
        exchange.finish(client.message()),
        Err(ScramRefusal::Password)
    );
}

proptest! {
    #[test]
    fn no_message_breaks_it(first in "(n|y|p=tls-server-end-point|),,n=.{0,4},r=.{0,8}|.{0,40}", second in "c=.{0,8},r=.{0,8},p=.{0,50}|.{0,40}") {
        let begun = ScramExchange::begin(&VERIFIERS, first.as_bytes(), false, ChannelBinding::None);
        if let Ok(exchange) = begun {
            prop_assert!(exchange.finish(second.as_bytes()).is_err());
        }
    }
}
