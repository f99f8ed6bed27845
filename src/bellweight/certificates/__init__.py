"""What can be proven about a policy: certificates, and checks that do not trust their maker."""
