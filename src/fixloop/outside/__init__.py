"""What leaves a workflow for agents, persons and other machines: mail, requests, bundles and branches."""
