"""What the system tests share. Everything here is bounded in time and ends only what it started."""
