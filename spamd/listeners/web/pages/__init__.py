"""The page that people see: what `admin` tells, as HTML. It works without JavaScript."""
