//! Users, roles and tokens: what each may do, what is refused, and that bytes keep all of it.

use marigram_access::{
    AccessCatalog, AccessError, AccessRecords, AccessUser, DatabasePrivileges, PasswordVerifiers,
    TokenScope, changed_records, from_records, to_records,
};
use proptest::prelude::*;
use std::sync::LazyLock;

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
    assert!(catalog.close());
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
    catalog.create_user("ann", user()).expect("ann");
    assert!(!catalog.close(), "nobody could administer");
    catalog.create_user("root", administrator()).expect("root");
    catalog
        .set_administrator("root", false)
        .expect("it is open");
    catalog.set_administrator("root", true).expect("it is open");
    assert!(catalog.is_open());
    assert!(catalog.close() && !catalog.is_open());
    let last = || Err(AccessError::LastAdministrator("root".to_owned()));
    assert_eq!(catalog.remove_user("root"), last());
    assert_eq!(catalog.set_administrator("root", false), last());
    assert_eq!(catalog.set_login("root", false), last());
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
    for (key, record) in to_records(&catalog).expect("records") {
        let text = String::from_utf8_lossy(&record).into_owned();
        let tells = text.contains(secret.text()) || text.contains("\"secret\"");
        assert!(!tells, "{key}: {text}");
    }

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
fn records_keep_everything_and_show_contradictions() {
    let mut catalog = catalog();
    catalog.grant_role("crew", "ann").expect("ann joins");
    catalog
        .make_token("ann", "d", TokenScope::Owner, (1, None))
        .expect("a token");
    let records = to_records(&catalog).expect("records");
    assert_eq!(from_records(&records).expect("they are whole"), catalog);
    assert_eq!(
        from_records(&to_records(&AccessCatalog::default()).expect("none")).expect("no users"),
        AccessCatalog::default()
    );
    // Without one of them, the others refer to what is not there, or everyone would come in.
    for key in ["state", "user:root", "user:crew", "user:ann"] {
        let mut less = records.clone();
        less.remove(key).expect(key);
        let read = from_records(&less);
        assert!(
            matches!(read, Err(AccessError::Damaged(_))),
            "{key}: {read:?}"
        );
    }
    for (key, text) in [
        ("user:eve", "{}"),
        ("token:x", "{}"),
        ("token:9", r#"{"owner":"ann"}"#),
        ("group:x", "{}"),
    ] {
        let mut more = records.clone();
        more.insert(key.to_owned(), text.as_bytes().into());
        let read = from_records(&more);
        assert!(
            matches!(read, Err(AccessError::Damaged(_))),
            "{key}: {read:?}"
        );
    }
}

#[test]
fn a_change_writes_only_what_changed() {
    let mut catalog = catalog();
    let before = to_records(&catalog).expect("records");
    catalog.remove_user("crew").expect("crew goes");
    catalog.grant("ann", "plant", WRITE).expect("ann");
    let after = to_records(&catalog).expect("records");
    let changed = changed_records(&before, &after);
    let keys: Vec<_> = changed
        .iter()
        .map(|(key, record)| (key.as_str(), record.is_some()))
        .collect();
    assert_eq!(keys, [("user:ann", true), ("user:crew", false)]);
    assert!(changed_records(&after, &after).is_empty());
}

static RECORDS: LazyLock<AccessRecords> =
    LazyLock::new(|| to_records(&catalog()).expect("records"));

proptest! {
    #[test]
    fn no_records_break_the_reader(
        key in "(user:|token:|state)?[a-z0-9]{0,3}",
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut records = RECORDS.clone();
        records.insert(key, bytes.into());
        let _ = from_records(&records);
    }
}
