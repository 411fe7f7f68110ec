-- Prepended to the scripts that give a ticket to an owner.
-- The claim gets a new fence, and the ticket's limit runs from now.
local function take(workflow, id, ticket, owner, token, clock)
  local fence = next_fence(SHARD)
  local key, limit = KEYS[9], ticket.limit_seconds and ticket.limit_name or ''
  local claimed = state_text('c', fence, owner, limit, token)
  if limit ~= '' then
    local due = clock + ticket.limit_seconds
    redis.call('HSET', key, 's:' .. id, claimed, 'd:' .. limit, seconds(due))
    look_at(workflow, due)
  else
    redis.call('HSET', key, 's:' .. id, claimed)
  end
  redis.call('HSET', OWNERS, id, fence .. ' ' .. owner)
  return fence
end

