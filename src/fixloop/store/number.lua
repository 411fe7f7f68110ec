-- Allocate the lowest issue number that a project has never used; the same token again gets the same number.
-- KEYS: the set of used numbers; a hash with the lowest number not yet checked and the last token's answer.

local used, place = KEYS[1], KEYS[2]
local last = redis.call('HMGET', place, 'token', 'number', 'free')
if last[1] == ARGV[1] then return tonumber(last[2]) end

local number = tonumber(last[3] or 1)
while redis.call('SADD', used, number) == 0 do number = number + 1 end
redis.call('HSET', place, 'token', ARGV[1], 'number', number, 'free', number + 1)
return number
