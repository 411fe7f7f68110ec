-- Remove an ended workflow, all or nothing. Its number is not used again; shared artifacts stay.
-- A repetition finds nothing, and writes the same again.

local WORKFLOW, HISTORY, ARTIFACTS, ENDED, RETIRED, CHANGES = unpack(KEYS, 9)
local workflow, head, feature, number, retired = unpack(ARGV)

local found = redis.call('HGET', WORKFLOW, 'head')
if found then
  if not redis.call('ZSCORE', ENDED, workflow) then return 'live' end
  if head_of(found) ~= head then return 'changed' end
end

-- Its tickets have no owner any more; other lists drop the members of missing workflows by themselves.
for _, field in ipairs(redis.call('HKEYS', WORKFLOW)) do
  local id = string.match(field, '^s:(.+)$')
  if id then redis.call('HDEL', OWNERS, id) end
end
redis.call('DEL', WORKFLOW, HISTORY, ARTIFACTS)
redis.call('ZREM', WORKFLOWS, workflow)
redis.call('ZREM', ENDED, workflow)
local newest = string.match(redis.call('HGET', RETIRED, feature) or '0', '^%d+') or '0'
if tonumber(number) >= tonumber(newest) then redis.call('HSET', RETIRED, feature, number .. ' ' .. retired) end
if found then announce(CHANGES, workflow, 0) end
return found and 'ok' or 'gone'
