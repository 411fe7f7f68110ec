-- Extend a claim's lease. It may come late: until another owner claims the ticket, the fence stays valid.

local WORKFLOW = KEYS[9]
local id, owner, fence, lease, workflow = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]

local found = redis.call('HMGET', WORKFLOW, 's:' .. id, 'done', 'parked')
local state = read_state(found[1])
if not state then
  local withdrawn = '\n' .. string.sub(id, #workflow + 2) .. ' - '
  return string.find(found[2] or '', withdrawn, 1, true) and 'cancelled' or 'lost'
end
if state.fence ~= fence or state.owner ~= owner then return 'lost' end

if state.kind ~= 'c' then
  -- A sweep offered it again, and nobody took it. Its token is gone: only this fence can continue the claim.
  if state.kind == 'p' then redis.call('ZREM', PENDING, state.rest) else redis.call('ZREM', DELAYED, id) end
  redis.call('HSET', WORKFLOW, 's:' .. id, state_text('c', fence, owner, state.limit, ''))
  redis.call('HSET', OWNERS, id, fence .. ' ' .. owner)
  local due = state.limit ~= '' and not found[3] and redis.call('HGET', WORKFLOW, 'd:' .. state.limit)
  if due then look_at(workflow, due) end
end
redis.call('ZADD', LEASES, read_clock() + lease, id)
return 'ok'
