use messaging::driver::COPY_RESERVE;
use messaging::{Capabilities, Error, ErrorKind, OutboundMessage};

/// Refuses a publish that the capabilities have no room for.
pub(crate) fn check(message: &OutboundMessage, capabilities: &Capabilities) -> Result<(), Error> {
    let queue = message.queue();
    let (delay, longest) = (message.delay_by(), capabilities.max_publish_delay);
    if delay > longest {
        let what = format!("publishing to `{queue}` with a delay of {delay:?}, where {longest:?} is the longest");
        return Err(Error::new(ErrorKind::Unsupported, what));
    }
    if let Some(largest) = capabilities.max_message_size {
        // A copy may use what is kept free for its headers.
        let largest = if message.is_copy() { largest } else { largest.saturating_sub(COPY_RESERVE) };
        let size = message.size();
        if size > largest {
            let what = format!("publishing {size} bytes to `{queue}`, where {largest} are the most");
            return Err(Error::new(ErrorKind::TooLarge, what));
        }
    }
    let headers = message.headers.len();
    match capabilities.max_headers {
        Some(most) if headers > most => {
            let what = format!("publishing {headers} headers to `{queue}`, where {most} are the most");
            Err(Error::new(ErrorKind::TooLarge, what))
        }
        Some(_) | None => Ok(()),
    }
}
