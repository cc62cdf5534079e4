//! The text of a server about a position: type, signature, documentation.

use std::path::Path;

use tokio::time::Instant;

use super::{Finding, Query, Target};
use crate::definition::ServerDefinition;
use crate::fault::Fault;
use crate::protocol::markup_text;
use crate::server::LanguageServer;

/// A query for the text about a position; none where there is nothing to say.
#[derive(Clone, Debug)]
pub(crate) struct Hover<'q> {
    pub(crate) target: &'q Target,
}

impl Query for Hover<'_> {
    type Answer = Option<String>;

    fn file(&self) -> &Path {
        &self.target.path
    }

    fn concerns_other_files(&self, _definition: &ServerDefinition) -> bool {
        false
    }

    async fn ask(
        &self,
        server: &mut LanguageServer,
        until: Instant,
    ) -> Result<Finding<Option<String>>, Fault> {
        server.require("hoverProvider", "types and documentation of a position")?;
        let params = server.position_params(self.target)?;
        let result = server.request("textDocument/hover", &params, until).await?;
        let text = markup_text(&result["contents"]);
        Ok(Finding::complete((!text.is_empty()).then_some(text)))
    }
}
