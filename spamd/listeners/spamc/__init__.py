"""The SPAMC protocol: spamc, Exim and whatever else calls SpamAssassin."""
