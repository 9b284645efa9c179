"""Commands on what is known of people: whom they let in and keep out."""
