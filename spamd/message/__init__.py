"""What a mail is: bytes → Message → what a person reads → tokens, facts, grams, identity."""
