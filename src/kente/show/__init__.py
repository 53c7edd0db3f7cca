"""What people look at: pages that hold everything they need in one file, and ask the network for nothing."""
