//! Users, roles and tokens: what each may do, what is refused, and that bytes keep all of it.

use marigram_access::{
    AccessCatalog, AccessError, AccessUser, DatabasePrivileges, PasswordVerifiers, TokenScope,
    decode, encode,
};
use proptest::prelude::*;

const READ: DatabasePrivileges = DatabasePrivileges::READ;
const WRITE: DatabasePrivileges = DatabasePrivileges::WRITE;
const ALL: DatabasePrivileges = DatabasePrivileges::ALL;

fn user() -> AccessUser {
    AccessUser {
        can_log_in: true,
        ..AccessUser::default()
    }
}

fn administrator() -> AccessUser {
    AccessUser {
        is_administrator: true,
        password: Some(PasswordVerifiers::from_password("secret").expect("it can be hashed")),
        ..user()
    }
}

/// `root`, an administrator; `ann`, who may read `plant` and write `lab`; the role `crew`.
fn catalog() -> AccessCatalog {
    let mut catalog = AccessCatalog::default();
    catalog.create_user("root", administrator()).expect("root");
    catalog.create_user("ann", user()).expect("ann");
    let role = AccessUser::default();
    catalog.create_user("crew", role).expect("crew");
    catalog.grant("ann", "plant", READ).expect("plant");
    catalog.grant("ann", "lab", WRITE).expect("lab");
    catalog
}

#[test]
fn grants_and_roles_add_up() {
    let mut catalog = catalog();
    assert!(catalog.rights_of("root").allow("any", ALL));
    let rights = catalog.rights_of("ann");
    assert!(rights.allow("plant", READ) && !rights.allow("plant", WRITE));
    assert!(rights.allow("lab", WRITE) && !rights.allow("lab", READ | WRITE));
    assert!(!rights.allow("other", READ));

    catalog.grant("crew", "plant", ALL).expect("crew");
    catalog.grant_role("crew", "ann").expect("ann joins");
    assert!(catalog.rights_of("ann").allow("plant", ALL));
    catalog.revoke("ann", "plant", ALL).expect("ann");
    assert!(
        catalog.rights_of("ann").allow("plant", ALL),
        "the role has it"
    );
    catalog.revoke_role("crew", "ann").expect("ann leaves");
    assert!(catalog.rights_of("ann").within("plant").is_empty());
    assert!(catalog.rights_of("nobody").databases.is_empty());
}

#[test]
fn roles_never_contain_each_other() {
    let mut catalog = catalog();
    catalog.grant_role("crew", "ann").expect("once");
    let circle = |role: &str, member: &str| {
        Err(AccessError::Circle {
            role: role.to_owned(),
            member: member.to_owned(),
        })
    };
    assert_eq!(catalog.grant_role("ann", "crew"), circle("ann", "crew"));
    assert_eq!(catalog.grant_role("crew", "crew"), circle("crew", "crew"));
}

#[test]
fn somebody_can_always_administer() {
    let mut catalog = AccessCatalog::default();
    assert!(catalog.is_open());
    let first = catalog.create_user("ann", user());
    assert!(matches!(first, Err(AccessError::Unusable(_))), "{first:?}");
    catalog.create_user("root", administrator()).expect("root");
    catalog.create_user("ann", user()).expect("ann");
    let last = || Err(AccessError::LastAdministrator("root".to_owned()));
    assert_eq!(catalog.remove_user("root"), last());
    assert_eq!(catalog.set_administrator("root", false), last());
    catalog.remove_user("ann").expect("ann");
    catalog.remove_user("root").expect("the last user can go");
    assert!(catalog.is_open());
}

#[test]
fn tokens_have_less_than_their_owner_and_an_end() {
    let mut catalog = catalog();
    let scope = TokenScope::Databases([("plant".to_owned(), ALL)].into());
    let made = catalog.make_token("ann", "dashboard", scope, (100, Some(200)));
    let (number, secret) = made.expect("a token");
    let (found, token, rights) = catalog.token_of(secret.text(), 199).expect("it is valid");
    assert_eq!((found, token.owner.as_str()), (number, "ann"));
    assert!(rights.allow("plant", READ), "the owner may");
    assert!(!rights.allow("plant", WRITE), "the owner may not");
    assert!(!rights.allow("lab", WRITE), "the token may not");
    assert!(catalog.token_of(secret.text(), 200).is_none(), "expired");
    assert!(catalog.token_of("mgt_other", 150).is_none());

    let scope = TokenScope::Databases([("plant".to_owned(), READ)].into());
    let (_, of_root) = catalog
        .make_token("root", "", scope, (100, None))
        .expect("root's");
    let (_, _, rights) = catalog.token_of(of_root.text(), i64::MAX).expect("no end");
    assert!(!rights.is_administrator && rights.allow("plant", READ));

    let text = format!("{catalog:?} {secret:?}");
    assert!(!text.contains(secret.text()), "{text}");
    let bytes = encode(&catalog).expect("bytes");
    let text = String::from_utf8_lossy(&bytes);
    assert!(
        !text.contains(secret.text()) && !text.contains("secret\""),
        "{text}"
    );

    catalog.remove_user("ann").expect("ann goes");
    assert!(
        catalog.token_of(secret.text(), 150).is_none(),
        "and her token"
    );
    let role = catalog.make_token("crew", "", TokenScope::Owner, (0, None));
    assert!(matches!(role, Err(AccessError::Unusable(_))));
}

#[test]
fn a_dropped_database_takes_its_privileges_along() {
    let mut catalog = catalog();
    let scope = TokenScope::Databases([("plant".to_owned(), READ)].into());
    let (_, secret) = catalog
        .make_token("root", "", scope, (0, None))
        .expect("root's");
    catalog.forget_database("plant");
    assert!(!catalog.rights_of("ann").allow("plant", READ));
    let (_, _, rights) = catalog.token_of(secret.text(), 1).expect("it is valid");
    assert!(!rights.allow("plant", READ));
}

#[test]
fn names_and_passwords_have_limits() {
    let mut catalog = catalog();
    for name in ["", "a\nb", &"x".repeat(1025)] {
        let created = catalog.create_user(name, user());
        assert!(matches!(created, Err(AccessError::Unusable(_))), "{name:?}");
    }
    let again = catalog.create_user("ann", user());
    assert_eq!(again, Err(AccessError::Exists("ann".to_owned())));
    for password in ["", "a\0b", &"x".repeat(1025)] {
        let made = PasswordVerifiers::from_password(password);
        assert!(matches!(made, Err(AccessError::Unusable(_))));
    }
}

#[test]
fn passwords_are_checked() {
    let verifiers = PasswordVerifiers::from_password("pässword").expect("it can be hashed");
    assert!(verifiers.verify("pässword"));
    for wrong in ["", "pässword ", "password", &"x".repeat(5000)] {
        assert!(!verifiers.verify(wrong), "{wrong}");
    }
    let again = PasswordVerifiers::from_password("pässword").expect("it can be hashed");
    assert_ne!(verifiers, again, "each has its own salt");
    assert!(!PasswordVerifiers::decoy("nobody", &[7; 32]).verify(""));
}

#[test]
fn bytes_keep_everything_and_show_every_damage() {
    let mut catalog = catalog();
    catalog.grant_role("crew", "ann").expect("ann joins");
    catalog
        .make_token("ann", "d", TokenScope::Owner, (1, None))
        .expect("a token");
    let bytes = encode(&catalog).expect("bytes");
    assert_eq!(decode(&bytes).expect("they are whole"), catalog);
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(decode(&changed).is_err(), "byte {at} changed");
        assert!(decode(&bytes[..at]).is_err(), "cut at {at}");
    }
    let longer = [bytes.as_slice(), b"x"].concat();
    assert!(decode(&longer).is_err());
}

proptest! {
    #[test]
    fn no_bytes_break_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes);
        let _ = decode(&[b"MGACCESS\x01\0\0\0".as_slice(), &bytes].concat());
    }
}
