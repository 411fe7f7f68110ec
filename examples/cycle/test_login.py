"""What logging in has to do, by the requirements; CD writes login.py until these pass."""

import unittest

from login import login


class Login(unittest.TestCase):
    def test_the_right_password_logs_in(self):
        self.assertTrue(login("ann", password="secret"))

    def test_a_wrong_password_does_not(self):
        self.assertFalse(login("ann", password="guess"))

    def test_a_token_logs_in_without_a_password(self):
        self.assertTrue(login("ann", token="oauth-ann"))


if __name__ == "__main__":
    unittest.main()
