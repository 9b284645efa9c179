"""What the page and the API show and do: history, mails, words, lessons, accounts, evaluation."""
