//! Faults: what goes wrong in a flow, as the fault sequence and the log see it.

use diagnostics::Span;
use files::places::NotDone;
use message::PayloadError;
use std::fmt;
use std::time::Duration;

/// The error codes of Synapse and WSO2 (`ERROR_CODE`).
pub mod code {
    /// An unclassified mediation error.
    pub const GENERAL: i32 = 0;
    /// The sender could not send.
    pub const SND_IO_ERROR_SENDING: i32 = 101500;
    /// The sender could not receive.
    pub const SND_IO_ERROR_RECEIVING: i32 = 101501;
    /// Connection refused, unknown host.
    pub const CONNECTION_FAILED: i32 = 101503;
    /// Timed out waiting for the response.
    pub const CONNECTION_TIMEOUT: i32 = 101504;
    /// The peer closed the connection.
    pub const CONNECTION_CLOSED: i32 = 101505;
    /// HTTP protocol violation.
    pub const PROTOCOL_VIOLATION: i32 = 101506;
    /// The connection could not be made in time; WSO2 also uses it for a peer that closes without answering.
    pub const CONNECT_TIMEOUT: i32 = 101508;
    /// Load balance or failover group: no member is ready.
    pub const LB_NONE_READY: i32 = 303000;
    /// The endpoint is suspended or off.
    pub const ENDPOINT_NOT_READY: i32 = 303001;
    /// The endpoint got no token to authenticate with.
    pub const ENDPOINT_AUTHENTICATION: i32 = 303003;
    /// The endpoint of a WSDL is suspended or off.
    pub const WSDL_NOT_READY: i32 = 303002;
    /// An endpoint key names nothing.
    pub const INDIRECT_NOT_READY: i32 = 305100;
    /// The endpoint that a session is bound to is not ready.
    pub const SESSION_NOT_READY: i32 = 309001;
    /// The endpoint that a session is bound to has failed.
    pub const SESSION_FAILED: i32 = 309003;
    /// `callout` failed.
    pub const CALLOUT_FAILED: i32 = 401000;
    /// The blocking sender failed.
    pub const BLOCKING_SENDER_FAILED: i32 = 401002;
    /// No transport can send to the address.
    pub const NO_TRANSPORT: i32 = 401003;
    /// A SOAP fault that is forced to be an error.
    pub const SOAP_FAULT: i32 = 500000;
    /// A mandatory template parameter is missing.
    pub const TEMPLATE_PARAMETER: i32 = 500101;
    /// The payload cannot be read: it is not what its type says, or larger than a flow may hold.
    pub const PAYLOAD: i32 = 601000;
}

/// `ERROR_CODE`: a number from the engine, any word from `throwError`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// See [`code`].
    Number(i32),
    /// `<throwError type="…">`.
    Word(String),
}

impl fmt::Display for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Code::Number(number) => write!(out, "{number}"),
            Code::Word(word) => out.write_str(word),
        }
    }
}

/// An error on its way to the fault stack.
#[derive(Clone, Debug)]
pub struct Fault {
    /// `ERROR_CODE`.
    pub code: Code,
    /// `ERROR_MESSAGE`: one line.
    pub message: String,
    /// `ERROR_DETAIL`: the chain of causes, one a line.
    pub detail: String,
    /// The mediator, endpoint or expression where it happened. The engine fills it in where it is missing.
    pub place: Option<Span>,
    /// The peer, where one was involved.
    pub peer: Option<String>,
    /// `SENDING_FAULT`: sending to an endpoint failed.
    pub sending: bool,
    /// `PROTOCOL_STATE_ON_FAILURE`: where an exchange stood that failed.
    pub protocol_state: Option<u8>,
    /// A backend may have processed the message: an attempt failed after something of it was sent.
    pub processed: bool,
    /// The status the client gets if no fault sequence answers (500 where nothing better is known).
    pub status: u16,
    /// Seconds until the endpoint may be asked again; 0: that is not known.
    pub ready_in: u16,
}

/// The fault where the system has no thread for an operation.
pub fn no_thread() -> Fault {
    Fault { status: 503, ..Fault::new(NotDone::NoThread.to_string()) }
}

impl Fault {
    /// A fault with code 0.
    pub fn new(message: impl Into<String>) -> Fault {
        Fault::with_code(code::GENERAL, message)
    }

    /// A fault with a code.
    pub fn with_code(code: i32, message: impl Into<String>) -> Fault {
        Fault {
            code: Code::Number(code),
            message: message.into(),
            detail: String::new(),
            place: None,
            peer: None,
            sending: false,
            protocol_state: None,
            processed: false,
            status: 500,
            ready_in: 0,
        }
    }

    /// Adds how long it is until the endpoint may be asked again, where that is known.
    pub fn ready_in(self, time: Option<Duration>) -> Fault {
        // Rounded up: who comes a moment too early waits as long again.
        let seconds = time.map_or(0, |time| time.as_millis().div_ceil(1000).max(1));
        Fault { ready_in: u16::try_from(seconds).unwrap_or(u16::MAX), ..self }
    }

    /// Adds where it happened, unless that is known already.
    pub fn at(mut self, place: Span) -> Fault {
        self.place.get_or_insert(place);
        self
    }

    /// As `send` tells it: WSO2 has the code of an address that no transport can send to for `call` only.
    pub(crate) fn of_send(mut self) -> Fault {
        if self.code == Code::Number(code::NO_TRANSPORT) {
            self.code = Code::Number(code::GENERAL);
        }
        self
    }

    /// As the fault of an answer whose body cannot be received: that is the backend's fault, not the client's.
    pub(crate) fn of_answer(mut self) -> Fault {
        if matches!(self.status, 400 | 413) {
            self.status = 502;
            if matches!(self.code, Code::Number(code::GENERAL | code::PAYLOAD)) {
                self.code = Code::Number(code::SND_IO_ERROR_RECEIVING);
            }
        }
        self
    }

    /// Whether the body of an answer could not be received.
    pub(crate) fn is_of_answer(&self) -> bool {
        self.code == Code::Number(code::SND_IO_ERROR_RECEIVING)
    }

    /// Whether an endpoint failed, or has nowhere to send to, and no step of the flow.
    pub(crate) fn is_of_endpoint(&self) -> bool {
        let code = match self.code {
            Code::Number(number) => number,
            Code::Word(_) => code::GENERAL,
        };
        self.sending
            || matches!(code, 101_500..=101_599 | 303_000..=309_999 | 401_000..=401_999 | code::SOAP_FAULT)
    }

    /// Adds the cause chain.
    pub fn because(mut self, detail: impl Into<String>) -> Fault {
        self.detail = detail.into();
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} (ERROR_CODE {})", self.message, self.code)?;
        if !self.detail.is_empty() && self.detail != self.message {
            write!(out, ": {}", self.detail)?;
        }
        Ok(())
    }
}

impl From<meter::Stop> for Fault {
    fn from(stop: meter::Stop) -> Fault {
        Fault::new(stop.to_string())
    }
}

impl From<message::jsonpath::Failure> for Fault {
    fn from(failure: message::jsonpath::Failure) -> Fault {
        Fault::new(failure.to_string())
    }
}

impl From<PayloadError> for Fault {
    fn from(error: PayloadError) -> Fault {
        let status = match &error {
            PayloadError::TooLarge { .. } => 413,
            PayloadError::Receiving(_) => 400,
            PayloadError::Shortage(_) | PayloadError::NoRoom { .. } => 503,
            _ => 500,
        };
        let number = match &error {
            PayloadError::Malformed { .. } | PayloadError::TooLarge { .. } => code::PAYLOAD,
            _ => code::GENERAL,
        };
        Fault { status, ..Fault::with_code(number, error.to_string()) }
    }
}
