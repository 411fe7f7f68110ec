"""What a workflow sends outside, to agents, people and other machines: mail, requests, bundles and branches."""
