"""What people keep and wish, as the API shows and changes it."""
