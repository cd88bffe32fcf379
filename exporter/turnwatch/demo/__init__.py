"""The demonstration: scripted agents, real servers, and what they said to each other and when."""
