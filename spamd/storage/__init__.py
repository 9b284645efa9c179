"""What is kept between two starts: counts, lessons, scans, and what feedback remembers."""
