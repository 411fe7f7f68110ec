import unittest

import gh_sync


class Titles(unittest.TestCase):
    def test_a_chat_becomes_a_title(self):
        self.assertEqual(gh_sync.title("0005-dx-gh-sync"), "0005 [dx] gh-sync")

    def test_what_is_no_chat_has_none(self):
        with self.assertRaises(ValueError):
            gh_sync.title("notes")

    def test_chats_are_listed_in_their_order(self):
        self.assertEqual(gh_sync.titles(["0007-ui-b", "notes", "0005-dx-a"]), ["0005 [dx] a", "0007 [ui] b"])


if __name__ == "__main__":
    unittest.main()
