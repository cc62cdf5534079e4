import b
use()
