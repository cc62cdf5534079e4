import a
use()
