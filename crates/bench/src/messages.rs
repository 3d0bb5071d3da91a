//! The message generator: order messages (`buyStocks`), their variants, and the other requests of the round.
//!
//! An order message is a SOAP 1.1 envelope with a list of orders. It has *exactly* the size asked for: as many whole
//! orders as fit, then spaces behind the last order, at most one order's length of them. Nothing depends on time or chance:
//! the same arguments always give the same bytes.
//!
//! ```text
//! <soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"><soapenv:Body>
//!   <m:buyStocks xmlns:m="http://services.samples/xsd">
//!     <order><symbol>IBM</symbol><buyerID>asankha</buyerID><price>140.34</price><volume>2000</volume></order>
//!     …
//! ```

use std::fmt::Write;

/// The namespace of SOAP 1.1.
pub const SOAP11: &str = "http://schemas.xmlsoap.org/soap/envelope/";
/// The namespace of SOAP 1.2.
pub const SOAP12: &str = "http://www.w3.org/2003/05/soap-envelope";
/// The namespace of `buyStocks` and of its reversed form; orders and their fields have none.
pub const ORDERS: &str = "http://services.samples/xsd";
/// The namespace of the stock quote service's operations.
pub const QUOTES: &str = "http://services.samples";
/// The namespace of the append service.
pub const APPEND: &str = "urn:busbar:append";
/// The value of the routing header that the routing proxies accept, as a SOAP header block and as a transport header.
pub const ROUTE: &str = "xadmin;server1;community#1.0##";
/// The namespace of the routing header block.
pub const ROUTING: &str = "http://someuri";

/// The sizes that the rounds publish, in bytes: 0.5, 1, 10 and 100 KiB and 1 MiB.
pub const SIZES: [usize; 5] = [512, 1 << 10, 10 << 10, 100 << 10, 1 << 20];

/// One order: symbol, buyer, price and volume, as written in the message.
pub type Order = (&'static str, &'static str, String, String);

/// The names that an order message is written with.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Schema {
    /// `buyStocks`, `order`, `symbol`, `buyerID`, `price`, `volume`.
    Orders,
    /// The same names written backwards, as the clients of the XSLT proxies do: `skcotSyub`, `redro`, `lobmys`, …
    Reversed,
}

impl Schema {
    /// The names of the payload, of an order, and of its four fields.
    pub fn names(self) -> [&'static str; 6] {
        match self {
            Schema::Orders => ["buyStocks", "order", "symbol", "buyerID", "price", "volume"],
            Schema::Reversed => ["skcotSyub", "redro", "lobmys", "DIreyub", "ecirp", "emulov"],
        }
    }
}

/// What kind of order message to write; the default is the plain one, with IBM as the first symbol.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The names in the payload.
    pub schema: Schema,
    /// Whether the envelope carries the routing header block.
    pub routing_header: bool,
    /// The symbol of the first order.
    pub first_symbol: &'static str,
}

impl Default for Variant {
    fn default() -> Variant {
        Variant { schema: Schema::Orders, routing_header: false, first_symbol: "IBM" }
    }
}

/// A SOAP 1.1 order message of exactly `size` bytes, or the smallest one (one order, about 300 bytes) where that is larger.
pub fn order_message(size: usize, variant: &Variant) -> Vec<u8> {
    let (mut text, tail) = envelope(variant);
    let mut order = String::new();
    let mut count = 0;
    loop {
        order.clear();
        write_order(&mut order, variant, count);
        if count > 0 && text.len() + order.len() + tail.len() > size {
            break;
        }
        text.push_str(&order);
        count += 1;
    }
    let padding = size.saturating_sub(text.len() + tail.len());
    text.extend(std::iter::repeat_n(' ', padding));
    text.push_str(&tail);
    text.into_bytes()
}

/// The orders that [`order_message`] writes for these arguments.
pub fn orders(size: usize, variant: &Variant) -> Vec<Order> {
    let (head, tail) = envelope(variant);
    let mut used = head.len() + tail.len();
    let mut list = Vec::new();
    let mut text = String::new();
    loop {
        text.clear();
        write_order(&mut text, variant, list.len());
        used += text.len();
        if !list.is_empty() && used > size {
            return list;
        }
        list.push(order(list.len(), variant.first_symbol));
    }
}

/// `buyStocks`, or its reversed form, with these orders and nothing around it.
pub fn payload(schema: Schema, orders: &[Order]) -> String {
    let names = schema.names();
    let mut text = format!("<m:{} xmlns:m=\"{ORDERS}\">", names[0]);
    for order in orders {
        write_fields(&mut text, &names, order);
    }
    let _ = write!(text, "</m:{}>", names[0]);
    text
}

/// A SOAP 1.1 request with a `getQuote` for each of `count` different symbols: the message that is split and aggregated.
pub fn quote_list(count: usize) -> Vec<u8> {
    let mut text = format!("<m:getQuotes xmlns:m=\"{QUOTES}\">");
    for n in 0..count {
        let symbol = list_symbol(n);
        let _ = write!(text, "<m:getQuote><m:request><m:symbol>{symbol}</m:symbol></m:request></m:getQuote>");
    }
    text.push_str("</m:getQuotes>");
    soap11(&text)
}

/// The symbol of the `n`th request of [`quote_list`]; no two are the same.
pub fn list_symbol(n: usize) -> String {
    let name = SYMBOLS[n % SYMBOLS.len()];
    if n < SYMBOLS.len() { name.to_owned() } else { format!("{name}{}", n / SYMBOLS.len()) }
}

/// A SOAP 1.1 request of exactly `size` bytes (or the smallest one) for the append service: a payload string.
pub fn append_message(size: usize) -> Vec<u8> {
    let empty = append_request("").len();
    append_request(&append_text(size.saturating_sub(empty)))
}

/// The payload string of [`append_message`] of that size.
pub fn append_payload(size: usize) -> String {
    append_text(size.saturating_sub(append_request("").len()))
}

/// `payload`, XML text, in a SOAP 1.1 envelope.
pub fn soap11(payload: &str) -> Vec<u8> {
    format!(
        "<soapenv:Envelope xmlns:soapenv=\"{SOAP11}\"><soapenv:Body>{payload}</soapenv:Body></soapenv:Envelope>"
    )
    .into_bytes()
}

/// `bytes` bytes that are neither XML nor UTF-8: a body that only a relay can pass.
pub fn binary_message(bytes: usize) -> Vec<u8> {
    // a linear congruential generator: every value appears, NUL and 0xFF among them
    let mut state = 0x2545_F491_u32;
    let mut body: Vec<u8> = Vec::with_capacity(bytes);
    body.extend([0xFF, 0x00, b'<'].iter().take(bytes));
    while body.len() < bytes {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        body.push((state >> 24) as u8);
    }
    body
}

/// A size as people write it: `512`, `0.5k`, `1k`, `100K`, `1m`, `1MB`, `10KiB`; k is 1024 bytes.
pub fn parse_size(text: &str) -> Result<usize, String> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &lower[digits.len()..] {
        "" | "b" => 1.0,
        "k" | "kb" | "kib" => 1024.0,
        "m" | "mb" | "mib" => 1024.0 * 1024.0,
        other => return Err(format!("unknown unit '{other}' in the size '{text}': use k or m")),
    };
    let bytes = digits.trim().parse::<f64>().map_err(|_| format!("'{text}' is not a size"))? * unit;
    if !(1.0..=1024.0 * 1024.0 * 1024.0).contains(&bytes) {
        return Err(format!("the size '{text}' is not between 1 byte and 1024m"));
    }
    Ok(bytes as usize)
}

/// The short form of a size, as used in file names: `512`, `1k`, `1m`.
pub fn size_name(bytes: usize) -> String {
    match bytes {
        b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{}m", b >> 20),
        b if b >= 1 << 10 && b % (1 << 10) == 0 => format!("{}k", b >> 10),
        b => b.to_string(),
    }
}

/// A message to be written to a file: its name and its bytes.
pub struct File {
    /// File name, with the size in it.
    pub name: String,
    /// What the message is for.
    pub about: &'static str,
    /// The message.
    pub bytes: Vec<u8>,
}

/// Every message of the round for these sizes.
pub fn files(sizes: &[usize]) -> Vec<File> {
    let mut list = Vec::new();
    for &size in sizes {
        let name = size_name(size);
        let plain = Variant::default();
        let mut add = |kind: &str, about, bytes| {
            list.push(File { name: format!("{kind}-{name}.xml"), about, bytes });
        };
        add("order", "orders, the first for IBM", order_message(size, &plain));
        let other = Variant { first_symbol: "SUN", ..plain };
        add("order-not-ibm", "orders, the first not for IBM", order_message(size, &other));
        let routed = Variant { routing_header: true, ..plain };
        add("order-routed", "orders with a routing header block", order_message(size, &routed));
        let reversed = Variant { schema: Schema::Reversed, ..plain };
        add("order-reversed", "orders in the reversed schema", order_message(size, &reversed));
        add("append", "a payload string for the append service", append_message(size));
    }
    list.push(File {
        name: "quotes-11.xml".into(),
        about: "eleven getQuote requests",
        bytes: quote_list(11),
    });
    list
}

/// Symbols, the first is that of the published message.
const SYMBOLS: [&str; 11] =
    ["IBM", "MSFT", "SUN", "ORCL", "CSCO", "INTC", "HPQ", "SAP", "DELL", "ADBE", "TXN"];
const BUYERS: [&str; 7] = ["asankha", "mara", "jonas", "priya", "chen", "lucia", "omar"];

fn order(n: usize, first_symbol: &'static str) -> Order {
    let symbol = if n == 0 { first_symbol } else { SYMBOLS[n % SYMBOLS.len()] };
    let cents = (14034 + n * 977) % 50_000;
    let volume = 2000 + n * 350 % 7000;
    (symbol, BUYERS[n % BUYERS.len()], format!("{}.{:02}", cents / 100, cents % 100), volume.to_string())
}

fn write_order(text: &mut String, variant: &Variant, n: usize) {
    write_fields(text, &variant.schema.names(), &order(n, variant.first_symbol));
}

fn write_fields(text: &mut String, names: &[&str; 6], (symbol, buyer, price, volume): &Order) {
    let [_, order, s, b, p, v] = names;
    let _ = write!(
        text,
        "<{order}><{s}>{symbol}</{s}><{b}>{buyer}</{b}><{p}>{price}</{p}><{v}>{volume}</{v}></{order}>"
    );
}

/// What stands before the first order and behind the padding.
fn envelope(variant: &Variant) -> (String, String) {
    let name = variant.schema.names()[0];
    let header = if variant.routing_header {
        format!("<soapenv:Header><routing xmlns=\"{ROUTING}\">{ROUTE}</routing></soapenv:Header>")
    } else {
        String::new()
    };
    let head = format!(
        "<soapenv:Envelope xmlns:soapenv=\"{SOAP11}\">{header}<soapenv:Body><m:{name} xmlns:m=\"{ORDERS}\">"
    );
    (head, format!("</m:{name}></soapenv:Body></soapenv:Envelope>"))
}

fn append_request(text: &str) -> Vec<u8> {
    soap11(&format!("<a:append xmlns:a=\"{APPEND}\"><payload>{text}</payload></a:append>"))
}

fn append_text(length: usize) -> String {
    "busbar ".chars().cycle().take(length).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variants() -> [Variant; 4] {
        let plain = Variant::default();
        [
            plain,
            Variant { routing_header: true, ..plain },
            Variant { schema: Schema::Reversed, ..plain },
            Variant { first_symbol: "SUN", ..plain },
        ]
    }

    #[test]
    fn sizes_are_exact_and_messages_the_same_every_time() {
        for variant in variants() {
            for size in SIZES.into_iter().chain([400, 513, 1999]) {
                let message = order_message(size, &variant);
                assert_eq!(message.len(), size, "{variant:?}");
                assert_eq!(message, order_message(size, &variant));
            }
        }
        for size in SIZES {
            assert_eq!(append_message(size).len(), size);
        }
    }

    #[test]
    fn a_size_too_small_for_one_order_gives_one_order() {
        let message = order_message(1, &Variant::default());
        assert_eq!(message.len(), 292);
        assert_eq!(orders(1, &Variant::default()).len(), 1);
    }

    #[test]
    fn the_first_order_is_the_published_one() {
        let text = String::from_utf8(order_message(512, &Variant::default())).unwrap();
        let first = "<order><symbol>IBM</symbol><buyerID>asankha</buyerID><price>140.34</price><volume>2000</volume></order>";
        assert!(text.contains(&format!("<m:buyStocks xmlns:m=\"{ORDERS}\">{first}")), "{text}");
    }

    #[test]
    fn the_listed_orders_are_those_in_the_message() {
        for variant in variants() {
            for size in [1, 512, 4096] {
                let text = String::from_utf8(order_message(size, &variant)).unwrap();
                let listed = payload(variant.schema, &orders(size, &variant));
                let (orders, _) = listed.rsplit_once("</m:").unwrap();
                let (_, behind) = text.split_once(orders).expect("the orders stand in the message");
                assert!(behind.trim_start_matches(' ').starts_with("</m:"), "{behind}");
                assert!(behind.len() - behind.trim_start_matches(' ').len() < 120);
            }
        }
    }

    #[test]
    fn reversed_names_are_the_names_backwards() {
        for (name, reversed) in Schema::Orders.names().into_iter().zip(Schema::Reversed.names()) {
            assert_eq!(name.chars().rev().collect::<String>(), reversed);
        }
    }

    #[test]
    fn the_quote_list_asks_for_different_symbols() {
        let symbols: std::collections::HashSet<_> = (0..40).map(list_symbol).collect();
        assert_eq!(symbols.len(), 40);
        let text = String::from_utf8(quote_list(11)).unwrap();
        assert_eq!(text.matches("<m:getQuote>").count(), 11);
    }

    #[test]
    fn sizes_as_people_write_them() {
        let cases = [
            ("512", Some(512)),
            ("0.5k", Some(512)),
            ("1k", Some(1024)),
            ("10KB", Some(10_240)),
            ("1 MiB", Some(1 << 20)),
            ("1m", Some(1 << 20)),
            ("", None),
            ("k", None),
            ("1x", None),
            ("-1k", None),
            ("0", None),
            ("nan", None),
            ("2000m", None),
        ];
        for (text, want) in cases {
            assert_eq!(parse_size(text).ok(), want, "{text}");
        }
        for size in SIZES {
            assert_eq!(parse_size(&size_name(size)), Ok(size));
        }
    }

    #[test]
    fn binary_messages_are_no_text() {
        assert_eq!(binary_message(100).len(), 100);
        assert!(String::from_utf8(binary_message(100)).is_err());
        assert!(binary_message(0).is_empty());
    }
}
