//! Throttle policies, in the form of the mediator and in the older one.

use config::Element;
use std::net::IpAddr;

/// What a policy says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Policy {
    /// Most requests on their way at once.
    pub concurrent: Option<usize>,
    pub entries: Vec<Entry>,
}

/// What holds for some callers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The id as written: the key of its counter.
    id: String,
    callers: Callers,
    access: Access,
}

#[derive(Debug, PartialEq, Eq)]
enum Callers {
    /// The first and the last address.
    Addresses(IpAddr, IpAddr),
    /// Every address that no other entry has.
    OtherAddresses,
    Host(String),
    /// Hosts that end so.
    HostsIn(String),
    OtherHosts,
    /// Roles are not looked at.
    Nobody,
}

/// What they may.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Access {
    Allow,
    Deny,
    Limit(Limit),
}

/// So many in so many milliseconds; prohibited for so many behind that.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Limit {
    pub count: u64,
    pub unit: u64,
    pub prohibit: u64,
}

/// Entries of one policy.
const MAX_ENTRIES: usize = 10_000;

impl Policy {
    /// Reads `wsp:Policy`, or an assertion itself.
    pub fn read(element: &Element) -> Result<Policy, String> {
        let assertion = find(element, 0, &|local| {
            matches!(
                local,
                "MediatorThrottleAssertion"
                    | "ThrottleAssertion"
                    | "ServiceThrottleAssertion"
                    | "ModuleThrottleAssertion"
            )
        });
        let assertion = assertion.ok_or("it has no MediatorThrottleAssertion")?;
        let mut policy = Policy { concurrent: None, entries: Vec::new() };
        read_into(assertion, &mut policy, 0)?;
        Ok(policy)
    }

    /// The entry for a caller, with the key of its counter: by host, only if none has it by address.
    pub fn find(&self, host: &str, address: &str) -> Option<(&str, &Access)> {
        let first = |fits: &dyn Fn(&Callers) -> bool| self.entries.iter().find(|entry| fits(&entry.callers));
        let by_host = || {
            first(&|callers| matches!(callers, Callers::Host(named) if named.eq_ignore_ascii_case(host)))
                .or_else(|| {
                    first(&|callers| matches!(callers, Callers::HostsIn(end) if ends_with(host, end)))
                })
                .or_else(|| first(&|callers| *callers == Callers::OtherHosts))
        };
        let ip: Option<IpAddr> = address.parse().ok().map(|ip: IpAddr| ip.to_canonical());
        let by_address = || {
            let Some(ip) = ip else { return first(&|callers| *callers == Callers::OtherAddresses) };
            first(&|callers| matches!(callers, Callers::Addresses(low, high) if low == high && *low == ip))
                .or_else(|| first(&|callers| matches!(callers, Callers::Addresses(low, high) if *low <= ip && ip <= *high && low.is_ipv4() == ip.is_ipv4())))
                .or_else(|| first(&|callers| *callers == Callers::OtherAddresses))
        };
        by_host().or_else(by_address).map(|entry| (entry.id.as_str(), &entry.access))
    }
}

fn ends_with(host: &str, end: &str) -> bool {
    host.len() >= end.len()
        && host.get(host.len() - end.len()..).is_some_and(|tail| tail.eq_ignore_ascii_case(end))
}

/// The first element of that name, going down.
fn find<'e>(element: &'e Element, depth: usize, is: &dyn Fn(&str) -> bool) -> Option<&'e Element> {
    if is(element.local()) {
        return Some(element);
    }
    element.elements().filter(|_| depth < 16).find_map(|child| find(child, depth + 1, is))
}

/// Entries stand in `wsp:Policy`, in the older form with `wsp:All` and `wsp:ExactlyOne` around.
fn read_into(element: &Element, policy: &mut Policy, depth: usize) -> Result<(), String> {
    for child in element.elements().filter(|_| depth < 16) {
        match child.local() {
            "MaximumConcurrentAccess" => {
                // Zero and less is no limit.
                policy.concurrent = usize::try_from(whole(child)?).ok().filter(|most| *most > 0);
            }
            "Policy" | "All" | "ExactlyOne" => match child.elements().find(|e| e.local() == "ID") {
                Some(id) if policy.entries.len() < MAX_ENTRIES => policy.entries.push(entry(child, id)?),
                Some(_) => return Err(format!("it has more than {MAX_ENTRIES} entries")),
                None => read_into(child, policy, depth + 1)?,
            },
            _ => {}
        }
    }
    Ok(())
}

fn entry(element: &Element, id: &Element) -> Result<Entry, String> {
    let text = id.text().trim().to_owned();
    // The attribute has the namespace of the policy.
    let kind = id
        .attributes()
        .iter()
        .find(|a| &*a.name.local == "type")
        .map_or("IP", |a| a.value.trim())
        .to_ascii_uppercase();
    let callers = match kind.as_str() {
        "IP" if text == "other" => Callers::OtherAddresses,
        "IP" => addresses(&text)?,
        "DOMAIN" if text == "other" => Callers::OtherHosts,
        "DOMAIN" => match text.strip_prefix('*') {
            Some(end) => Callers::HostsIn(end.to_owned()),
            None => Callers::Host(text.clone()),
        },
        "ROLE" => Callers::Nobody,
        other => return Err(format!("`{other}` is not a type of an ID; expected IP, DOMAIN or ROLE")),
    };
    let is_allow = |e: &&Element| matches!(e.local(), "Allow" | "Deny" | "Control" | "IsAllow");
    let says = element.elements().find_map(|child| {
        if is_allow(&child) {
            Some(child)
        } else {
            find(child, 0, &|local| matches!(local, "Allow" | "Deny" | "Control" | "IsAllow"))
        }
    });
    let access = match says {
        Some(allow) if allow.local() == "Allow" => Access::Allow,
        Some(deny) if deny.local() == "Deny" => Access::Deny,
        Some(is_allow) if is_allow.local() == "IsAllow" && is_allow.text().trim() == "false" => Access::Deny,
        Some(is_allow)
            if is_allow.local() == "IsAllow" && find(element, 0, &|l| l == "MaximumCount").is_none() =>
        {
            Access::Allow
        }
        _ => {
            let value = |name: &str| find(element, 0, &|local| local == name).map(number).transpose();
            let needed = |name: &str| value(name)?.ok_or_else(|| format!("the entry `{text}` has no {name}"));
            let (count, unit) = (needed("MaximumCount")?, needed("UnitTime")?);
            let prohibit = find(element, 0, &|local| local == "ProhibitTimePeriod");
            let prohibit =
                prohibit.filter(|child| !child.text().trim().is_empty()).map(number).transpose()?;
            let prohibit = prohibit.unwrap_or(0);
            // No time is a window that is over at once.
            if count == 0 {
                Access::Deny
            } else if unit == 0 {
                Access::Allow
            } else {
                Access::Limit(Limit { count, unit, prohibit })
            }
        }
    };
    Ok(Entry { id: format!("{kind} {text}"), callers, access })
}

/// A number that cannot be negative.
fn number(element: &Element) -> Result<u64, String> {
    let number = whole(element)?;
    u64::try_from(number).map_err(|_| format!("`{number}` of {} is negative", element.local()))
}

fn whole(element: &Element) -> Result<i64, String> {
    let text = element.text();
    text.trim().parse().map_err(|_| format!("`{}` of {} is not a number", text.trim(), element.local()))
}

/// `a`, `a-b`, `a.b.*`.
fn addresses(text: &str) -> Result<Callers, String> {
    let wrong = || format!("`{text}` is not an address, a range a-b or a.b.*");
    let ip = |text: &str| text.trim().parse::<IpAddr>().map_err(|_| wrong());
    if let Some(start) = text.strip_suffix('*') {
        let parts: Vec<&str> = start.split('.').filter(|part| !part.is_empty() && *part != "*").collect();
        if parts.len() > 3 {
            return Err(wrong());
        }
        let filled = |with: &'static str| {
            parts.iter().copied().chain(std::iter::repeat(with)).take(4).collect::<Vec<_>>().join(".")
        };
        return Ok(Callers::Addresses(ip(&filled("0"))?, ip(&filled("255"))?));
    }
    match text.split_once('-') {
        Some((low, high)) => {
            let (low, high) = (ip(low)?, ip(high)?);
            if low.is_ipv4() == high.is_ipv4() && low <= high {
                Ok(Callers::Addresses(low, high))
            } else {
                Err(wrong())
            }
        }
        None => ip(text).map(|one| Callers::Addresses(one, one)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_ranges() {
        for (text, inside, outside) in [
            ("10.1.1.1", vec!["10.1.1.1"], vec!["10.1.1.2"]),
            ("10.1.1.1 - 10.1.1.50", vec!["10.1.1.1", "10.1.1.50"], vec!["10.1.1.51", "::1"]),
            ("10.1.1.*", vec!["10.1.1.0", "10.1.1.255"], vec!["10.1.2.0"]),
            ("10.*.*.*", vec!["10.9.9.9"], vec!["11.0.0.0"]),
            ("::1", vec!["::1"], vec!["::2", "127.0.0.1"]),
        ] {
            let Ok(callers) = addresses(text) else { panic!("{text}") };
            let entries = vec![Entry { id: text.to_owned(), callers, access: Access::Deny }];
            let policy = Policy { concurrent: None, entries };
            inside.iter().for_each(|ip| assert!(policy.find("", ip).is_some(), "{text} {ip}"));
            outside.iter().for_each(|ip| assert!(policy.find("", ip).is_none(), "{text} {ip}"));
        }
        for bad in ["", "10.1.1", "a-b", "10.0.0.2-10.0.0.1", "10.0.0.1-::1", "1.2.3.4.*", "*.x"] {
            assert!(addresses(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn limits_that_are_none_and_callers_that_have_no_address() {
        let read = |most: &str, numbers: &str| {
            let text = format!(
                "<t:MediatorThrottleAssertion xmlns:t='t'>{most}<Policy><t:ID>other</t:ID><Policy><t:Control>{numbers}</t:Control></Policy></Policy></t:MediatorThrottleAssertion>"
            );
            let Ok(element) = config::parse(diagnostics::FileId::BUILT_IN, &text) else {
                panic!("it parses")
            };
            Policy::read(&element)
        };
        let numbers = "<t:MaximumCount>2</t:MaximumCount><t:UnitTime>9</t:UnitTime><t:ProhibitTimePeriod/>";
        for (written, most) in [("0", None), ("-1", None), ("3", Some(3))] {
            let text = format!("<t:MaximumConcurrentAccess>{written}</t:MaximumConcurrentAccess>");
            assert_eq!(read(&text, numbers).map(|policy| policy.concurrent), Ok(most));
        }
        let policy = read("", numbers).expect("a policy");
        for address in ["unknown", "1.2.3.4:5555", "", "::1"] {
            assert_eq!(
                policy.find("", address).map(|found| found.1),
                Some(&Access::Limit(Limit { count: 2, unit: 9, prohibit: 0 })),
                "{address}"
            );
        }
        let none =
            read("", "<t:MaximumCount>0</t:MaximumCount><t:UnitTime>9</t:UnitTime>").expect("a policy");
        assert_eq!(none.find("", "1.1.1.1").map(|found| found.1), Some(&Access::Deny));
        for wrong in [
            "<t:MaximumCount>-1</t:MaximumCount><t:UnitTime>9</t:UnitTime>",
            "<t:MaximumCount>x</t:MaximumCount>",
        ] {
            assert!(read("", wrong).is_err(), "{wrong}");
        }
        assert!(read("<t:MaximumConcurrentAccess>many</t:MaximumConcurrentAccess>", numbers).is_err());
    }

    #[test]
    fn the_older_form() {
        let text = r#"<wsp:Policy xmlns:wsp="p" xmlns:t="t"><t:ThrottleAssertion><wsp:All><t:ID t:type="IP">other</t:ID><wsp:ExactlyOne><wsp:All><t:MaximumCount>6</t:MaximumCount><t:UnitTime>800000</t:UnitTime><t:ProhibitTimePeriod wsp:Optional="true">1000</t:ProhibitTimePeriod></wsp:All><t:IsAllow>true</t:IsAllow></wsp:ExactlyOne></wsp:All><wsp:All><t:ID t:type="IP">1.2.3.4</t:ID><wsp:ExactlyOne><t:IsAllow>false</t:IsAllow></wsp:ExactlyOne></wsp:All></t:ThrottleAssertion></wsp:Policy>"#;
        let Ok(element) = config::parse(diagnostics::FileId::BUILT_IN, text) else { panic!("it parses") };
        let policy = Policy::read(&element).expect("a policy");
        assert_eq!(
            policy.find("", "9.9.9.9").map(|f| f.1),
            Some(&Access::Limit(Limit { count: 6, unit: 800_000, prohibit: 1000 }))
        );
        assert_eq!(policy.find("", "1.2.3.4").map(|f| f.1), Some(&Access::Deny));
    }
}
